//! Removals that wait, and their messages.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Child, Stdio},
};

use anyhow::{Context as _, ensure};
use periapt_tests::Installation;

/// Creates a model with a unit whose stop hook will fail, without retries.
fn stubborn() -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    periapt.deploy("probe", ["--config", "script=stop: fail not yet\n*: status active fine"])?;
    periapt.wait_for(["unit", "probe/0"])?;
    Ok(periapt)
}

/// A command that waits, with its output so far.
struct Removal {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
    lines: Vec<String>,
}

impl Removal {
    fn start(periapt: &Installation, arguments: &[&str]) -> anyhow::Result<Self> {
        let mut command = periapt.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let said = BufReader::new(child.stderr.take().context("no standard error")?);
        Ok(Self { child, said, lines: Vec::new() })
    }

    /// Reads until a line contains a text, and returns the line.
    fn says(&mut self, text: &str) -> anyhow::Result<String> {
        loop {
            let mut line = String::new();
            ensure!(self.said.read_line(&mut line)? > 0, "it ended without {text:?}: {:?}", self.lines);
            self.lines.push(line.clone());
            if line.contains(text) {
                return Ok(line);
            }
        }
    }

    /// Returns all lines of standard error after a successful end with empty standard output.
    fn end(mut self) -> anyhow::Result<Vec<String>> {
        self.lines.extend(self.said.lines().collect::<Result<Vec<_>, _>>()?);
        let mut output = String::new();
        self.child.stdout.take().context("no standard output")?.read_to_string(&mut output)?;
        let ended = self.child.wait()?;
        ensure!(ended.success() && output.is_empty(), "{ended}: {output:?} {:?}", self.lines);
        ensure!(!self.lines.iter().any(|line| line.contains(['\u{1b}', '\r'])), "{:?}", self.lines);
        Ok(self.lines)
    }
}

#[test]
fn a_destroyed_controller_tells_which_units_it_waits_for_and_what_helps() -> anyhow::Result<()> {
    let periapt = stubborn()?;
    let destroy = ["destroy-controller", "local", "--destroy-all-models", "--no-prompt"];
    let mut removal = Removal::start(&periapt, &destroy)?;
    let failed = "Waiting for unit probe/0 in model test: hook failed: \"stop\"";
    removal.says(failed)?;
    let hint = removal.says("hint: ")?;
    assert!(hint.contains("`periapt resolved -m test probe/0`"), "{hint}");
    assert!(hint.contains("`periapt destroy-controller local --destroy-all-models --force`"), "{hint}");
    // A second failure is not reported again.
    let show = ["show-unit", "-m", "test", "probe/0"];
    let commits = |shown: &serde_json::Value| shown["probe/0"]["commits"].as_u64().unwrap_or_default();
    let before = commits(&periapt.json(show)?);
    periapt.ok(["resolved", "-m", "test", "probe/0"])?;
    periapt.json_until(&show, |shown| {
        let operation = shown["probe/0"]["operation"].as_str().unwrap_or_default();
        commits(shown) > before && operation.starts_with("stop failed")
    })?;
    periapt.ok(["resolved", "-m", "test", "probe/0", "--no-retry"])?;
    let lines = removal.end()?;
    assert_eq!(lines.iter().filter(|line| line.contains(failed)).count(), 1, "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains("Waiting for model test: 1 application(s), 1 unit(s)")),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("Controller \"local\" is destroyed"), "{lines:?}");
    Ok(())
}

#[test]
fn a_destroyed_model_that_is_forced_tells_what_it_waits_for_unless_it_is_to_be_quiet() -> anyhow::Result<()> {
    for quiet in [false, true] {
        let periapt = stubborn()?;
        // The hook fails, and the command tells it, before the unit is removed by force.
        let most = if quiet { "3s" } else { "15s" };
        let mut destroy = vec!["destroy-model", "test", "--no-prompt", "--force", "--max-wait", most];
        destroy.extend(quiet.then_some("--quiet"));
        let lines = Removal::start(&periapt, &destroy)?.end()?;
        if quiet {
            assert_eq!(lines, Vec::<String>::new());
            continue;
        }
        let text = lines.join("\n");
        assert!(text.contains("Waiting for unit probe/0 in model test: hook failed: \"stop\""), "{text}");
        assert!(
            text.contains("hint: `periapt resolved -m test probe/0`") && !text.contains("--force"),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn a_command_that_gives_up_names_the_units_that_failed_and_what_helps() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    periapt.deploy("probe", ["--config", "script=start: fail the disk is full\n*: status active fine"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    // The first attempt destroys the model, and the second one finds it dying.
    for (destroy, forced) in [
        (&["destroy-model", "test"][..], "`periapt destroy-model test --force`"),
        (
            &["destroy-controller", "local", "--destroy-all-models"],
            "`periapt destroy-controller local --destroy-all-models --force`",
        ),
    ] {
        let done = periapt.run([destroy, &["--no-prompt", "--give-up-after", "0s"]].concat())?;
        let said = done.one_error()?;
        ensure!(done.code == Some(1), "{done:?}");
        ensure!(said.contains("model test is not gone yet: 1 unit(s), 1 application(s) left"), "{said}");
        ensure!(said.contains("unit probe/0: hook failed: \"start\""), "{said}");
        ensure!(said.contains("`periapt resolved -m test UNIT`") && said.contains(forced), "{said}");
    }
    // The removal continues without the command.
    periapt.ok(["resolved", "-m", "test", "probe/0", "--no-retry"])?;
    periapt.ok(["destroy-controller", "local", "--destroy-all-models", "--no-prompt"])?;
    Ok(())
}

#[test]
fn a_removed_application_tells_of_units_that_do_not_go_by_themselves() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    periapt.deploy("probe", ["--config", "script=start: fail the disk is full\n*: status active fine"])?;
    periapt.deploy("probe", ["other", "--config", "script=start: fail"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    periapt.wait_for(["unit", "other/0", "--status", "error"])?;
    let removed = periapt.run(["remove-application", "probe", "--no-prompt"])?;
    assert_eq!((removed.code, removed.stdout.as_str()), (Some(0), ""), "{removed:?}");
    let lines: Vec<_> = removed.stderr.lines().collect();
    assert_eq!(lines.len(), 3, "{removed:?}");
    assert_eq!(lines[1], "unit probe/0 is stuck: hook failed: \"start\"", "{removed:?}");
    assert!(lines[2].contains("`periapt remove-application -m test probe --force`"), "{removed:?}");
    let quiet = periapt.run(["--quiet", "remove-unit", "other/0", "--no-prompt"])?;
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");
    Ok(())
}
