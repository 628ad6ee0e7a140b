//! Tests of hooks that may have killed a runner.

use std::time::Duration;

use periapt_host_api::{OperationId, journal::HookOutcome};

use super::stage::{CommitDelivery, RunnerAction, Stage, charm, deploy, hooks, is_idle};
use crate::protocol::Suspect;

/// The operation of a new unit's first hook. The only earlier commit is its deployment.
const INSTALL: u64 = 1;

/// The unit with the suspected hook, and a new unit with another charm.
const SUSPECTED: &str = "app/0";
const OTHER: &str = "b/0";

fn suspect(deaths: u32) -> Suspect {
    Suspect { unit: SUSPECTED.parse().unwrap(), operation: OperationId(INSTALL), deaths }
}

/// Starts a runner of two units after a runner that died in the install hook of the first.
async fn stage(deaths: u32) -> Stage {
    let mut rehearsal = Stage::new(&[SUSPECTED]).await;
    rehearsal.until(|did| matches!(did.last(), Some(RunnerAction::Started(..)))).await;
    assert_eq!(rehearsal.unit(SUSPECTED).record.seq, INSTALL);
    deploy(&mut rehearsal.lab, "b", &charm(2), 1).unwrap();
    rehearsal.again_with(vec![suspect(deaths)]).await
}

fn has_started(did: &[RunnerAction], name: &str) -> bool {
    did.iter().any(|did| matches!(did, RunnerAction::Started(unit, _) if unit.to_string() == name))
}

fn cleared(stage: &Stage) -> bool {
    stage.did.contains(&RunnerAction::Ended(SUSPECTED.parse().unwrap(), INSTALL))
}

#[tokio::test]
async fn a_suspect_runs_before_anything_else() {
    let mut stage = stage(2).await;
    stage.until(|did| is_idle(did, SUSPECTED) && is_idle(did, OTHER)).await;
    let first =
        stage.did.iter().position(|did| *did == RunnerAction::Ended(SUSPECTED.parse().unwrap(), INSTALL));
    let others = stage.did.iter().position(|did| match did {
        RunnerAction::Started(unit, _) | RunnerAction::Early(unit, _) => unit.to_string() == OTHER,
        RunnerAction::Committed(commit) => commit.unit.to_string() == OTHER,
        _ => false,
    });
    assert!(first.unwrap() < others.unwrap(), "{:?}", stage.did);
}

#[tokio::test]
async fn a_hook_that_killed_three_runners_fails_without_being_run() {
    let mut stage = stage(3).await;
    stage.until(|did| is_idle(did, OTHER)).await;
    let commits = stage.commits();
    let (name, outcome) = hooks(&commits).into_iter().next().unwrap();
    assert_eq!(name, "install");
    assert_eq!(outcome, HookOutcome::Failed { message: "the sandbox crashed".to_owned() });
    let ran = stage
        .did
        .iter()
        .any(|did| matches!(did, RunnerAction::Started(unit, INSTALL) if unit.to_string() == SUSPECTED));
    assert!(!ran, "{:?}", stage.did);
    assert!(cleared(&stage));
}

#[tokio::test]
async fn a_suspect_that_is_not_due_any_more_is_cleared() {
    let late = Suspect { operation: OperationId(77), ..suspect(3) };
    let mut stage = Stage::with_suspects(&[SUSPECTED], vec![late]).await;
    stage.until(|did| is_idle(did, SUSPECTED)).await;
    assert!(stage.did.contains(&RunnerAction::Ended(SUSPECTED.parse().unwrap(), 77)));
    assert!(
        hooks(&stage.commits()).iter().all(|(_, outcome)| !matches!(outcome, HookOutcome::Failed { .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn a_suspect_whose_charm_does_not_arrive_holds_nobody_up_and_runs_alone_when_it_does() {
    let mut stage = stage(2).await;
    stage.away.insert(charm(1).digest(), "it is damaged".to_owned());
    stage.until(|did| is_idle(did, OTHER)).await;
    assert!(!cleared(&stage), "it stays a suspect");
    // A hook of the other unit is running when the charm arrives.
    stage.serve_for(Duration::from_secs(11)).await;
    let before = stage.commits().len();
    stage.deliveries.push_back(CommitDelivery::Hold);
    stage.configure("b").await;
    stage
        .until(|did| did.iter().filter(|did| matches!(did, RunnerAction::Committed(_))).count() > before)
        .await;
    stage.away.clear();
    stage.serve_for(Duration::from_secs(30)).await;
    assert!(!has_started(&stage.did, SUSPECTED), "nothing runs beside it");
    stage.let_through().await;
    stage.until(|did| is_idle(did, SUSPECTED)).await;
    assert!(cleared(&stage));
}
