//! An agent whose processes are stopped for a while, as under a debugger or on a suspended host.

use std::{
    env, fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, POLL_INTERVAL, RunningProcess, signal};
use serde_json::Value;

/// The environment variable of the pause, in seconds. After more than a lease (60 s) leadership moves: the test's
/// long form.
const STANDS_STILL: &str = "PERIAPT_STANDSTILL";

/// Returns a process and all its descendants.
fn tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for list in tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok()) {
        all.extend(list.split_whitespace().filter_map(|pid| pid.parse().ok()).flat_map(tree));
    }
    all
}

/// Returns the leader, according to the controller.
fn leader(periapt: &Installation) -> anyhow::Result<String> {
    for unit in ["probe/0", "probe/1"] {
        if periapt.json(["show-unit", unit])?.pointer(&format!("/{}/leader", unit.replace('/', "~1")))
            == Some(&Value::Bool(true))
        {
            return Ok(unit.to_owned());
        }
    }
    Ok(String::new())
}

/// Returns the answers of `is-leader` to charms, in order, each with its unit.
fn leader_answers(periapt: &Installation) -> anyhow::Result<Vec<(String, bool)>> {
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    let answers = log.lines().filter_map(|line| {
        let (head, answer) = line.split_once("tool is-leader: 0 ")?;
        let unit = head.split(':').next()?.strip_prefix("unit-")?;
        Some((unit.replace("probe-", "probe/"), answer.trim() == "True"))
    });
    Ok(answers.collect())
}

/// Makes every unit ask by changing an option, which has no other effect.
fn ask(periapt: &Installation, round: &mut u32, wait_for: &[&str]) -> anyhow::Result<()> {
    *round += 1;
    let before = leader_answers(periapt)?;
    let count = |all: &[(String, bool)], unit: &str| all.iter().filter(|(of, _)| of == unit).count();
    let script = format!("config-changed: tool is-leader\n# {round}");
    periapt.ok(["config", "probe", &format!("script={script}")])?;
    let began = Instant::now();
    loop {
        let now = leader_answers(periapt)?;
        if wait_for.iter().all(|unit| count(&now, unit) > count(&before, unit)) {
            return Ok(());
        }
        ensure!(began.elapsed() < Duration::from_secs(60), "nobody answers: {now:?}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// After a short pause the unit still leads; after a pause longer than a lease, another unit leads alone.
#[test]
fn an_agent_that_stood_still_goes_on_and_leads_beside_nobody() -> anyhow::Result<()> {
    let seconds = env::var(STANDS_STILL).map_or(Ok(2), |text| text.parse()).context(STANDS_STILL)?;
    let long = seconds > 60;
    let periapt = Installation::bootstrapped()?;
    let mut second: RunningProcess = periapt.agent("second", [])?;
    assert_eq!(second.first_line()?, "ready second");
    let script = "script=config-changed: tool is-leader";
    periapt.deploy("probe", ["-n", "2", "--to", "agent=first,agent=second", "--config", script])?;
    periapt.wait_for(["application", "probe", "--units", "2", "--status", "unknown"])?;

    let old = leader(&periapt)?;
    let other = if old == "probe/0" { "probe/1" } else { "probe/0" };
    let mut round = 0;
    ask(&periapt, &mut round, &[&old, other])?;
    let keeper = if old == "probe/0" { periapt.agent_process("local")? } else { second.id() };
    let stopped = tree(keeper);
    for pid in &stopped {
        signal(*pid, "STOP")?;
    }
    let began = Instant::now();
    let mut asked_other = false;
    while began.elapsed() < Duration::from_secs(seconds) || (long && !asked_other) {
        ensure!(began.elapsed() < Duration::from_secs(seconds + 120), "nobody takes over");
        if long && !asked_other && leader(&periapt)? == other {
            ask(&periapt, &mut round, &[other])?;
            asked_other = true;
        }
        thread::sleep(POLL_INTERVAL);
    }
    for pid in &stopped {
        signal(*pid, "CONT")?;
    }
    ask(&periapt, &mut round, &[&old, other])?;
    let answers = leader_answers(&periapt)?;
    let mut leaders: Vec<&str> =
        answers.iter().filter(|(_, leads)| *leads).map(|(unit, _)| unit.as_str()).collect();
    leaders.dedup();
    let expected: &[&str] = if long { &[&old, other] } else { &[&old] };
    assert_eq!(leaders, expected, "{answers:?}");
    Ok(())
}
