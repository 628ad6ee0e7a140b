//! A model that migrates from three controllers to one that is alone, and back, while controllers die.

use std::{fs, thread, time::Duration};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, signal};

use crate::site::{Site, until};

/// Waits until a unit has run more hooks. Each logs a line.
fn runs_hooks(host: &Installation, model: &str) -> anyhow::Result<()> {
    let newest = || host.ok(["debug-log", "-m", model, "--include", "busy/0", "--limit", "1", "--no-tail"]);
    let before = newest()?;
    until("hooks run", || Ok(newest()? != before))
}

#[test]
fn a_model_of_three_controllers_migrates_while_the_leading_one_dies_and_comes_back() -> anyhow::Result<()> {
    let mut site = Site::bootstrapped_on(Installation::empty()?, &["--no-agent"])?;
    site.join_on(Installation::empty()?, "two")?;
    site.join_on(Installation::empty()?, "three")?;
    let host = site.host(0)?;
    host.ok(["bootstrap", "other", "--no-agent"])?;
    let mut agent = host.agent("first", [])?;
    ensure!(agent.first_line()? == "ready first", "the agent runs");
    host.ok(["switch", "local"])?;
    host.ok(["add-model", "test"])?;
    host.ok(["model-config", "update-status-hook-interval=1s"])?;
    host.deploy("probe", ["busy"])?;
    fs::write(host.path().join("data.txt"), vec![b'x'; 64 << 20])?;
    host.ok(["attach-resource", "busy", "data=data.txt"])?;
    until("a hook has run", || Ok(host.run(["hooks", "busy/0"])?.code == Some(0)))?;

    host.ok(["migrate", "local:test", "other", "--no-wait"])?;
    let leader = site.leader(0)?.context("a leader")?;
    signal(site.host(leader)?.controller_process("local")?, "KILL")?;
    thread::sleep(Duration::from_secs(5));
    site.host(leader)?.ok(["controller", "start", "local"])?;
    until("the model has moved", || {
        let done = host.run(["migrate", "local:test", "other"])?;
        ensure!(!done.stderr.contains("the model stays"), "{done:?}\n{}", host.logs());
        Ok(done.stderr.contains("has moved"))
    })?;
    runs_hooks(host, "other:test")?;

    host.ok(["migrate", "local:test", "--forget", "--force"])?;
    until("it can come back", || {
        Ok(host.run(["migrate", "other:test", "local", "--check"])?.code == Some(0))
    })?;
    host.ok(["migrate", "other:test", "local"])?;
    runs_hooks(host, "local:test")
}
