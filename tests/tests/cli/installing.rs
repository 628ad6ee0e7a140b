//! `make install`: the installed files and their places, and the installed binary at work.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, binary};

/// Runs a script of `tools` with some arguments, with the binary under test as it is.
fn tool(name: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools").join(name);
    let output = Command::new(script)
        .args(arguments)
        // Stripping takes seconds, and does not matter here.
        .env("PERIAPT_STRIP", "no")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running tools/{name}"))?;
    ensure!(output.status.success(), "tools/{name} failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

#[test]
fn what_is_installed_to_a_prefix_bootstraps() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let prefix = place.path().join("prefix");
    let (prefix_text, own) = (prefix.to_str().context("the prefix")?, binary()?);
    let own_text = own.to_str().context("the binary")?;
    tool("install", &["--prefix", prefix_text, "--binary", own_text])?;

    let installed = prefix.join("bin/periapt");
    for page in ["periapt.1.gz", "periapt-deploy.1.gz", "periapt-agent-run.1.gz"] {
        ensure!(prefix.join("share/man/man1").join(page).exists(), "there is no manual page {page}");
    }
    for script in [
        "share/bash-completion/completions/periapt",
        "share/zsh/site-functions/_periapt",
        "share/fish/vendor_completions.d/periapt.fish",
    ] {
        let text = fs::read_to_string(prefix.join(script))?;
        ensure!(text.contains(installed.to_str().context("the installed binary")?), "{script}: {text}");
        ensure!(!text.contains(own_text), "{script} asks the binary that it was made by: {text}");
    }
    for unit in ["periapt-controller@.service", "periapt-agent@.service"] {
        let text = fs::read_to_string(prefix.join("lib/systemd/system").join(unit))?;
        let starts = format!("\nExecStart={}", installed.display());
        ensure!(text.contains(&starts) && !text.contains("@bindir@"), "{unit}: {text}");
    }

    let periapt = Installation::empty()?;
    let run = |arguments: &[&str]| -> anyhow::Result<String> {
        let mut command = periapt.program(&installed);
        command.args(arguments);
        let done = Installation::finished(command)?;
        ensure!(done.code == Some(0), "{arguments:?} failed: {done:?}");
        Ok(done.stdout)
    };
    run(&["bootstrap", "local", "--agent-name", "first"])?;
    ensure!(run(&["agents"])?.contains("first"), "the agent is not there");
    run(&["add-model", "test"])?;
    ensure!(run(&["status"])?.contains("test"), "the model is not there");
    run(&["destroy-controller", "local", "--no-prompt", "--destroy-all-models"])?;
    Ok(())
}

#[test]
fn what_a_package_stages_speaks_of_where_it_will_be() -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let (stage, own) = (place.path().to_str().context("the stage")?, binary()?);
    tool(
        "install",
        &["--prefix", "/usr", "--destdir", stage, "--binary", own.to_str().context("the binary")?],
    )?;
    for file in [
        "usr/share/bash-completion/completions/periapt",
        "usr/share/zsh/site-functions/_periapt",
        "usr/share/fish/vendor_completions.d/periapt.fish",
        "usr/lib/systemd/system/periapt-agent@.service",
    ] {
        let text = fs::read_to_string(place.path().join(file))?;
        ensure!(text.contains("/usr/bin/periapt") && !text.contains(stage), "{file}: {text}");
    }
    let agent = fs::read_to_string(place.path().join("usr/lib/systemd/system/periapt-agent@.service"))?;
    ensure!(agent.contains("\nRestartPreventExitStatus=3\n"), "a removed agent is started for ever: {agent}");
    Ok(())
}

#[test]
fn a_prefix_that_is_no_absolute_path_is_refused() -> anyhow::Result<()> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/install");
    for (arguments, says) in [
        (["--prefix", "here"], "the prefix must be an absolute path, and is here"),
        (["--where", "/usr"], "unknown argument --where"),
    ] {
        let output = Command::new(&script).args(arguments).stdin(Stdio::null()).output()?;
        let told = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(2) && told.contains(says), "{arguments:?}: {told}");
    }
    Ok(())
}
