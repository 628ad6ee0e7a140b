//! Machines whose clocks are wrong: before 1970, as after a failed battery, where times look odd and everything else works;
//! and wrong on one of two hosts, where certificates are invalid.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, packed};
use serde_json::Value;

/// Builds the library that has a process read an earlier clock.
fn early_clock(periapt: &Installation) -> anyhow::Result<PathBuf> {
    let library = periapt.path().join("early_clock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_input/early_clock.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status()?;
    ensure!(built.success(), "cc does not build it");
    Ok(library)
}

#[test]
fn a_clock_before_1970_stops_nobody() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let library = early_clock(&periapt)?;
    let early = |words: &[&str]| -> anyhow::Result<String> {
        let done = periapt.command(words).env("LD_PRELOAD", &library).output()?;
        ensure!(done.status.success(), "{words:?}: {done:?}");
        Ok(String::from_utf8(done.stdout)?)
    };
    let archive = packed("mysql", periapt.path())?;
    early(&["bootstrap", "local", "--agent-name", "first"])?;
    early(&["add-model", "test"])?;
    early(&["deploy", archive.to_str().unwrap_or_default()])?;
    early(&["wait-for", "application", "mysql", "--timeout", "90s"])?;
    let status: Value = serde_json::from_str(&early(&["status", "--format", "json"])?)?;
    let since = status.pointer("/model/model-status/since").and_then(Value::as_str);
    ensure!(since.is_some_and(|since| since.contains(" 19")), "{since:?}: the clock is not early");
    for words in [
        &["debug-log", "--no-tail"][..],
        &["show-status-log", "mysql/0"],
        &["show-unit", "mysql/0"],
        &["add-unit", "mysql"],
        &["remove-application", "mysql", "--no-prompt"],
    ] {
        early(words)?;
    }
    for log in ["controller.log", "agent.log"] {
        let text = fs::read_to_string(periapt.path().join("data/controllers/local").join(log))?;
        ensure!(!text.contains("panicked"), "{log}: {text}");
    }
    Ok(())
}

#[test]
fn a_host_whose_clock_makes_certificates_invalid_is_told_by_how_much_it_is_wrong() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let library = early_clock(&periapt)?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    let listing = periapt.json(["controllers"])?;
    let url = listing.pointer("/controllers/local/url").and_then(Value::as_str).context("a URL")?.to_owned();
    periapt.ok(["agent-token", "one", "--output", "one.token"])?;
    let words = ["agent", "run", "--controller", &url, "--name", "one", "--data", "one"];
    let join = || periapt.command([&words[..], &["--token-file", "one.token"]].concat());
    for (days, told) in [
        ("400", "its certificate becomes valid in 399 days"),
        ("-400", "its certificate expired 310 days ago"),
    ] {
        let mut command = join();
        command.env("LD_PRELOAD", &library).env("EARLY_CLOCK_DAYS", days);
        let error = Installation::finished(command)?.one_error()?;
        ensure!(error.contains(told), "{days}: {error}");
        ensure!(error.contains("this machine's clock, or the controller's, is wrong by as much"), "{error}");
    }
    // The token was not used up.
    let mut agent = periapt.spawned(join())?;
    ensure!(agent.first_line()? == "ready one", "it joins once its clock is right");
    ensure!(agent.end("TERM")? == Some(0), "it ends");
    Ok(())
}
