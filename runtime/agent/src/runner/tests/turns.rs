//! Tests of the order of hooks when only one may run at a time.

use std::time::Duration;

use super::stage::{CommitDelivery, RunnerAction, Stage, is_idle};

/// Long enough for all work of a runner without outside events.
const A_WHILE: Duration = Duration::from_secs(11);

fn started(did: &[RunnerAction], name: &str) -> usize {
    did.iter().filter(|did| matches!(did, RunnerAction::Started(unit, _) if unit.to_string() == name)).count()
}

#[tokio::test(start_paused = true)]
async fn an_action_that_waits_keeps_its_place_whatever_changes() {
    const UNITS: [&str; 3] = ["app/0", "b/0", "c/0"];
    let mut stage = Stage::with_one_place(&UNITS).await;
    stage.until(|did| UNITS.iter().all(|unit| is_idle(did, unit))).await;
    // A hook of b/0 occupies the only place.
    stage.serve_for(A_WHILE).await;
    let before = started(&stage.did, "b/0");
    stage.deliveries.push_back(CommitDelivery::Hold);
    stage.configure("b").await;
    stage
        .until(|did| started(did, "b/0") > before && matches!(did.last(), Some(RunnerAction::Committed(_))))
        .await;
    // An action becomes due, then a hook, then come changes that concern neither.
    stage.run_script("app/0", "status-get").await;
    stage.serve_for(A_WHILE).await;
    stage.configure("c").await;
    stage.serve_for(A_WHILE).await;
    for retries in ["false", "true", "false"] {
        stage.change(|lab| lab.configure_model(&[("automatically-retry-hooks", retries)])).await;
        stage.serve_for(A_WHILE).await;
    }
    let before = started(&stage.did, "c/0");
    stage.let_through().await;
    let begun = |did: &RunnerAction| matches!(did, RunnerAction::Committed(it) if it.transitions.begin_task.is_some());
    stage.until(|did| did.iter().any(begun) || started(did, "c/0") > before).await;
    assert_eq!(started(&stage.did, "c/0"), before, "who came later went first");
}
