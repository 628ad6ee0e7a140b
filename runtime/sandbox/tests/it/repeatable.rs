//! Repeated runs with the same inputs, and replays from a record.

use std::collections::BTreeSet;

use periapt_hook::ReplayedCalls;
use periapt_host_api::{event::Event, journal::RecordedCalls};
use periapt_sandbox::{HandlerOutcome, Seed};

use crate::world::{Hook, RunResult, db, lease, prepared, unit};

fn joined() -> Event {
    Event::RelationJoined { relation: db(), remote_unit: unit("w/0") }
}

/// Runs mysql, which creates a password for each related application from random numbers.
async fn mysql(seed: u8) -> RunResult {
    let mut hook = Hook::new(joined());
    hook.lease = lease(60);
    hook.seed = Seed([seed; 32]);
    hook.run(&prepared("mysql", "mysql"), "mysql").await
}

#[tokio::test]
async fn a_hook_costs_the_same_and_does_the_same_each_time() {
    let runs = [mysql(1).await, mysql(1).await, mysql(1).await];
    assert_eq!(runs[0].report.outcome, HandlerOutcome::Handled);
    let costs: BTreeSet<_> =
        runs.iter().map(|ran| (ran.report.costs.fuel, ran.report.costs.host_calls)).collect();
    assert_eq!(costs.len(), 1, "{costs:?}");
    assert!(runs.iter().all(|ran| ran.report.gathered == runs[0].report.gathered));
    assert!(runs.iter().all(|ran| ran.early == runs[0].early));
}

#[tokio::test]
async fn another_seed_gives_another_run_of_a_charm_that_draws() {
    let drawn = |ran: &RunResult| format!("{:?}", ran.report.gathered);
    let (one, other) = (mysql(1).await, mysql(2).await);
    assert_eq!(other.report.outcome, HandlerOutcome::Handled);
    assert_ne!(drawn(&one), drawn(&other));
}

/// Replays a run of mysql with the first seed. It has no lease, so the record alone can answer its calls.
async fn replayed(calls: RecordedCalls) -> RunResult {
    let mut hook = Hook::new(joined());
    hook.seed = Seed([1; 32]);
    hook.replay = Some(calls);
    hook.run(&prepared("mysql", "mysql"), "mysql").await
}

/// Asserts that a replay is the same as the run.
fn assert_same(ran: &RunResult, again: &RunResult) {
    assert_eq!(again.report.outcome, ran.report.outcome);
    let same = ran.report.gathered.calls.calls.len() as u64;
    assert_eq!(again.report.gathered.replayed, Some(ReplayedCalls { same, difference: None }));
    let costs = |ran: &RunResult| (ran.report.costs.fuel, ran.report.costs.host_calls);
    assert_eq!(costs(again), costs(ran));
    assert_eq!(again.log(), ran.log());
    assert!(again.report.gathered.effects.is_empty(), "a replay changes nothing");
}

#[tokio::test]
async fn a_replayed_hook_makes_the_recorded_calls_at_the_recorded_cost() {
    let ran = mysql(1).await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    assert!(ran.report.gathered.calls.calls.len() > 5 && !ran.report.gathered.effects.is_empty());
    assert_same(&ran, &replayed(ran.report.gathered.calls.clone()).await);
}

#[tokio::test]
async fn a_replay_ends_at_the_first_call_that_differs() {
    let mut calls = mysql(1).await.report.gathered.calls;
    let last = calls.calls.last_mut().unwrap();
    last.arguments = "[\"other\"]".to_owned();
    let (number, function) = (calls.calls.len() as u64, calls.calls.last().unwrap().function.clone());
    let again = replayed(calls).await;
    assert!(matches!(again.report.outcome, HandlerOutcome::Failed(_)));
    let ReplayedCalls { same, difference } = again.report.gathered.replayed.unwrap();
    let difference = difference.unwrap();
    assert_eq!((same, difference.number), (number - 1, number));
    let (recorded, made) = (difference.recorded.unwrap(), difference.made.unwrap());
    assert_eq!((recorded.function, recorded.arguments.as_str()), (function.clone(), "[\"other\"]"));
    assert_eq!(made.function, function);
    assert_ne!(made.arguments, recorded.arguments);
}

#[tokio::test]
async fn another_seed_is_another_run_for_a_replay() {
    let calls = mysql(2).await.report.gathered.calls;
    assert!(replayed(calls).await.report.gathered.replayed.unwrap().difference.is_some());
}

#[tokio::test]
async fn a_replayed_tool_writes_its_file_again() {
    let script =
        "config-changed: tool config-get --output /tmp/script script\nconfig-changed: read /tmp/script";
    let ran = Hook::new(Event::ConfigChanged).option("script", script);
    let ran = ran.run(&prepared("probe", "probe"), "probe").await;
    assert_eq!(ran.report.outcome, HandlerOutcome::Handled);
    assert!(ran.log().join("\n").contains("read /tmp/script: config-changed: tool"), "{:?}", ran.log());
    // The unit has no script now: the record has it.
    let mut hook = Hook::new(Event::ConfigChanged);
    hook.replay = Some(ran.report.gathered.calls.clone());
    assert_same(&ran, &hook.run(&prepared("probe", "probe"), "probe").await);
}
