//! Repeated runs with the same inputs.

use std::collections::BTreeSet;

use periapt_host_api::event::Event;
use periapt_sandbox::{HandlerOutcome, Seed};

use crate::world::{Hook, RunResult, db, lease, prepared, unit};

/// Runs mysql, which creates a password for each related application from random numbers.
async fn mysql(seed: u8) -> RunResult {
    let mut hook = Hook::new(Event::RelationJoined { relation: db(), remote_unit: unit("w/0") });
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
