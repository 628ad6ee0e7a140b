//! Hooks that fail, and their resolution by the operator.

use periapt_tests::Installation;

/// Creates a model in which the start hook of `probe` has failed, without retries.
fn failed() -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    periapt.deploy("probe", ["--config", "script=start: fail the disk is full\n*: status active fine"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    Ok(periapt)
}

/// Returns the number of runs of a hook of `probe/0`.
fn runs(periapt: &Installation, hook: &str) -> anyhow::Result<usize> {
    let text = periapt.ok(["hooks", "probe/0"])?;
    Ok(text.lines().filter(|line| line.split_whitespace().nth(3) == Some(hook)).count())
}

#[test]
fn a_failed_hook_is_seen_in_the_status_the_journal_and_the_log() -> anyhow::Result<()> {
    let periapt = failed()?;
    let status = periapt.json(["status"])?;
    let unit = &status["applications"]["probe"]["units"]["probe/0"];
    assert_eq!(unit["workload-status"]["current"], "error");
    assert_eq!(unit["workload-status"]["message"], "hook failed: \"start\"");
    assert_eq!(unit["juju-status"]["current"], "idle");
    let shown = periapt.json(["show-unit", "probe/0"])?;
    let operation = shown["probe/0"]["operation"].as_str().unwrap_or_default();
    assert!(operation.starts_with("start failed, attempt 1: "), "{operation}");
    assert!(operation.contains("the disk is full"), "{operation}");
    let log = periapt.ok(["debug-log", "--replay", "--no-tail", "--level", "ERROR"])?;
    assert!(log.contains("the disk is full"), "{log}");
    assert_eq!(runs(&periapt, "start")?, 1);
    Ok(())
}

#[test]
fn a_hook_that_is_resolved_runs_again() -> anyhow::Result<()> {
    let periapt = failed()?;
    periapt.ok(["config", "probe", "script=*: status active fine"])?;
    periapt.ok(["resolved", "--all"])?;
    periapt.wait_for(["model"])?;
    assert_eq!(runs(&periapt, "start")?, 2);
    let error = periapt.refused(["resolved", "probe/0"])?;
    assert!(error.contains("probe/0"), "{error}");
    Ok(())
}

#[test]
fn a_hook_that_is_resolved_without_a_retry_is_taken_as_done() -> anyhow::Result<()> {
    let periapt = failed()?;
    periapt.ok(["resolved", "probe/0", "--no-retry"])?;
    periapt.ok(["config", "probe", "count=true"])?;
    periapt.wait_for(["model"])?;
    let journal = periapt.ok(["hooks", "probe/0"])?;
    let outcomes: Vec<_> = journal.lines().filter(|line| line.contains("  start ")).collect();
    assert!(outcomes.iter().any(|line| line.contains("failed")), "{journal}");
    assert!(!outcomes.iter().any(|line| line.contains("  ok ")), "start ran again: {journal}");
    Ok(())
}

#[test]
fn a_hostile_charm_is_stopped_and_its_neighbour_goes_on() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    periapt.deploy("hostile", ["--config", "mode=trap"])?;
    periapt.wait_for(["unit", "hostile/0", "--status", "error"])?;
    periapt.deploy("mysql", [])?;
    periapt.wait_for(["application", "mysql"])?;
    let shown = periapt.json(["show-unit", "hostile/0"])?;
    let operation = shown["hostile/0"]["operation"].as_str().unwrap_or_default();
    assert!(operation.starts_with("install failed, attempt 1: "), "{operation}");
    Ok(())
}
