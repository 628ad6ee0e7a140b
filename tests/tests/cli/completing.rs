//! Shell completion.

use periapt_tests::Installation;

/// Returns the completions of the last of these words.
fn completed(periapt: &Installation, words: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut command = periapt.command(["--", "periapt"].iter().chain(words));
    command.env("PERIAPT_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    let output = command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).output()?;
    anyhow::ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// Checks that the last of these words is completed to one name. A completion has little time: a busy machine may need
/// another one.
fn completes(periapt: &Installation, words: &[&str], expected: &str) -> anyhow::Result<()> {
    let mut names = Vec::new();
    for _ in 0..10 {
        names = completed(periapt, words)?;
        if !names.is_empty() {
            break;
        }
    }
    anyhow::ensure!(names == [expected], "{words:?}: {names:?}");
    Ok(())
}

#[test]
fn a_shell_is_told_the_names_that_there_are_now() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", [])?;
    periapt.wait_for(["unit", "probe/0", "--status", "unknown"])?;
    completes(&periapt, &["config", "pr"], "probe")?;
    assert_eq!(completed(&periapt, &["config", "no"])?, [""; 0]);
    completes(&periapt, &["show-unit", "probe/"], "probe/0")?;
    completes(&periapt, &["run", "probe/0", "gre"], "greet")?;
    completes(&periapt, &["switch", "t"], "test")?;
    completes(&periapt, &["status", "-m", "te"], "test")?;
    // Completion uses the model that the line names, not the current one.
    periapt.ok(["add-model", "empty"])?;
    assert_eq!(completed(&periapt, &["config", "pr"])?, [""; 0]);
    completes(&periapt, &["config", "-m", "test", "pr"], "probe")?;
    // Commands and options complete even without a controller.
    periapt.ok(["controller", "stop"])?;
    assert_eq!(completed(&periapt, &["show-un"])?, ["show-unit"]);
    assert_eq!(completed(&periapt, &["deploy", "--num"])?, ["--num-units"]);
    assert_eq!(completed(&periapt, &["config", "-m", "test", "pr"])?, [""; 0]);

    let script = periapt.ok(["completion", "bash"])?;
    assert!(script.contains("PERIAPT_COMPLETE=\"bash\""), "{script}");
    Ok(())
}
