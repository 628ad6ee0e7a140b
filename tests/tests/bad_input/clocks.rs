//! A machine whose clock is before 1970, as after a failed battery. Times look odd, and everything else works.

use std::{fs, path::Path, process::Command};

use anyhow::ensure;
use periapt_tests::{Installation, packed};
use serde_json::Value;

#[test]
fn a_clock_before_1970_stops_nobody() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let library = periapt.path().join("early_clock.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_input/early_clock.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status()?;
    ensure!(built.success(), "cc does not build it");
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
