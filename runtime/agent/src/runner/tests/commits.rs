//! Tests of a runner's commits and of its reactions to the answers.

use std::time::Duration;

use periapt_host_api::{
    agent::RunnerCommand,
    commit::{PortRequest, UnitCommit},
    journal::HookOutcome,
    record::{HookStep, Operation},
};
use periapt_uniter::WorkloadsTold;

use super::stage::{CommitDelivery, RunnerAction, Stage, add_unit_beside, charm, charm_with, hooks, is_idle};
use crate::{protocol::ToRunner, runner::RunnerError};

const START_UP: [&str; 4] = ["install", "leader-settings-changed", "config-changed", "start"];

fn names(stage: &Stage) -> Vec<String> {
    hooks(&stage.commits()).into_iter().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn a_new_unit_starts_up_commit_by_commit_and_says_that_it_is_idle() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    assert_eq!(names(&stage), START_UP);
    let commits = stage.commits();
    let configured = commits.iter().find(|commit| !commit.effects.ports.open.is_empty()).unwrap();
    let journal = configured.journal.as_ref().unwrap();
    assert_eq!((journal.event.hook_name(), journal.seq), ("config-changed".to_owned(), configured.seq));
    assert_eq!(journal.outcome, HookOutcome::Handled);
    assert!(journal.costs.fuel > 0 && !journal.calls.calls.is_empty());
    assert_eq!(journal.seed.len(), 64);
    let seeds: std::collections::BTreeSet<_> =
        commits.iter().filter_map(|commit| commit.journal.as_ref()).map(|journal| &journal.seed).collect();
    assert_eq!(seeds.len(), START_UP.len(), "each run draws its own");
    let unit = stage.unit("app/0");
    assert_eq!(unit.workload_status.message, "says \"Hello\" on port 7777");
    assert!(unit.record.started);
}

#[tokio::test]
async fn a_view_in_many_lines_is_used_once_all_have_come() {
    let mut stage = Stage::new(&["app/0", "app/1"]).await;
    // Each entry is a line of its own.
    stage.line_bytes = 0;
    stage.until(|did| is_idle(did, "app/0") && is_idle(did, "app/1")).await;
    assert_eq!(names(&stage).len(), 2 * START_UP.len());
}

#[tokio::test]
async fn a_short_hook_is_one_request_and_is_announced_before_it_runs() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    let ran: Vec<_> = stage
        .commits()
        .into_iter()
        .filter(|commit| commit.journal.is_some())
        .map(|commit| commit.seq)
        .collect();
    for seq in ran {
        let position = |wanted: &dyn Fn(&RunnerAction) -> bool| stage.did.iter().position(wanted).unwrap();
        let started = position(&|did| *did == RunnerAction::Started("app/0".parse().unwrap(), seq));
        let committed = position(&|did| matches!(did, RunnerAction::Committed(commit) if commit.seq == seq));
        let ended = position(&|did| *did == RunnerAction::Ended("app/0".parse().unwrap(), seq));
        assert!(started < committed && committed < ended, "{started} {committed} {ended}");
    }
}

#[tokio::test]
async fn while_the_controller_is_away_the_same_is_sent_again_and_nothing_else_begins() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.deliveries = [
        CommitDelivery::Take,
        CommitDelivery::Away,
        CommitDelivery::Away,
        CommitDelivery::Away,
        CommitDelivery::Take,
    ]
    .into();
    stage.until(|did| is_idle(did, "app/0")).await;
    let commits = stage.commits();
    for again in &commits[2..5] {
        assert_eq!(*again, commits[1]);
    }
    assert_ne!(commits[5], commits[1]);
    assert_eq!(names(&stage).iter().filter(|name| *name == "install").count(), 4);
    assert_eq!(
        stage.did.iter().filter(|did| matches!(did, RunnerAction::Started(..))).count(),
        START_UP.len()
    );
}

#[tokio::test]
async fn a_stale_commit_is_dropped_and_the_unit_resolved_from_its_new_record() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| matches!(did.last(), Some(RunnerAction::Ended(..)))).await;
    let seq = stage.commits().last().unwrap().record.seq;
    // The unit has advanced, and the runner does not know it.
    for _ in 0..5 {
        stage.meddle("app/0", |_| {});
    }
    stage.until(|did| matches!(did.last(), Some(RunnerAction::Committed(commit)) if commit.seq == seq)).await;
    let dropped = stage.commits().last().unwrap().early.len();
    stage.publish().await;
    stage.until(|did| matches!(did.last(), Some(RunnerAction::Committed(commit)) if commit.seq != seq)).await;
    let anew = stage.commits().last().copied().unwrap().clone();
    assert_eq!(anew.seq, seq + 5);
    // Early effects have happened, whatever the commit's outcome: no number is missing.
    assert!(anew.early.len() >= dropped);
    stage.until(|did| is_idle(did, "app/0")).await;
}

#[tokio::test(start_paused = true)]
async fn a_runner_whose_commits_stay_stale_leaves() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| did.iter().any(|did| matches!(did, RunnerAction::Started(..)))).await;
    // Another runner attached in its place.
    stage.lab.call("host", RunnerCommand::Attach).unwrap();
    stage.until(|did| matches!(did.last(), Some(RunnerAction::Left(_)))).await;
    assert!(matches!(stage.runner.await.unwrap(), Err(RunnerError::Revoked)));
}

#[tokio::test(start_paused = true)]
async fn b05_a_charm_that_is_replaced_on_its_way_in_is_dropped_until_the_mirror_shows_the_other() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    let before = stage.commits().len();
    stage.change(|lab| lab.refresh("app", &charm(2))).await;
    // The runner does not learn of the next refresh.
    stage.lab.refresh("app", &charm(3)).unwrap();
    // The runner stays and starts nothing else, however late the news comes.
    stage.serve_for(Duration::from_secs(120)).await;
    assert_eq!(stage.commits().len(), before + 1);
    let dropped = stage.commits().last().copied().unwrap().clone();
    assert_eq!(dropped.record.charm.unwrap().digest, charm(2).digest());
    assert!(!stage.did.iter().any(|did| matches!(did, RunnerAction::Left(_))));
    stage.publish().await;
    stage.until(|did| is_idle(did, "app/0")).await;
    let anew = stage.commits()[before + 1].clone();
    assert_eq!((anew.seq, anew.record.charm.unwrap().digest), (dropped.seq, charm(3).digest()));
    let after: Vec<_> = names(&stage).split_off(START_UP.len());
    assert_eq!(after, ["upgrade-charm", "config-changed"]);
}

#[tokio::test]
async fn a_refused_commit_is_a_hook_failure_without_effects() {
    let mut stage = Stage::new(&["app/0"]).await;
    let begun =
        |did: &[RunnerAction]| did.iter().filter(|did| matches!(did, RunnerAction::Started(..))).count();
    stage.until(|did| begun(did) == 3).await;
    // While config-changed runs, another unit on the machine opens the port, and the runner does not know it.
    let second = add_unit_beside(&mut stage.lab, "app/0").unwrap().to_string();
    let taken = PortRequest { range: "7777/tcp".parse().unwrap(), endpoint: None };
    let open = |commit: &mut UnitCommit| commit.effects.ports.open = [taken].into();
    stage.lab.manual_unit(&second).unwrap().commit(open).unwrap();
    stage
        .until(|did| matches!(did.last(), Some(RunnerAction::Committed(it)) if matches!(it.record.operation, Operation::Hook { step: HookStep::Failed(_), .. })))
        .await;
    let commits = stage.commits();
    let [.., refused, failure] = commits.as_slice() else { panic!("one commit, and one of its failure") };
    assert!(!refused.effects.ports.open.is_empty() && failure.effects.is_empty());
    assert_eq!((refused.seq, &refused.unit), (failure.seq, &failure.unit));
    let Some(HookOutcome::Failed { message }) = failure.journal.clone().map(|journal| journal.outcome) else {
        panic!("the journal says that it failed")
    };
    assert!(message.contains("port range conflicts with 7777/tcp (unit \"app/2\")"), "{message}");
    assert!(matches!(
        failure.record.operation,
        Operation::Hook { step: HookStep::Failed(ref failure), .. } if failure.attempts == 1
    ));
}

#[tokio::test(start_paused = true)]
async fn a_hook_beside_workloads_runs_once_the_controller_has_its_beginning() {
    let started =
        |did: &[RunnerAction]| did.iter().filter(|did| matches!(did, RunnerAction::Started(..))).count();
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| is_idle(did, "app/0")).await;
    stage.change(|lab| lab.refresh("app", &charm_with("containers: {web: {}}"))).await;
    // upgrade-charm and config-changed
    stage.until(|did| started(did) == START_UP.len() + 2 && is_idle(did, "app/0")).await;
    let before = started(&stage.did);
    // What a hook asks of a workload takes effect at once, so nothing of it may run before.
    stage.deliveries.push_back(CommitDelivery::Hold);
    let boots = [("web".parse().unwrap(), "1".to_owned())].into();
    let listens = WorkloadsTold { version: 1, boots: [("app/0".parse().unwrap(), boots)].into() };
    stage.send(ToRunner::Workloads(listens)).await;
    let begins = |did: &RunnerAction| match did {
        RunnerAction::Committed(commit) => {
            commit.record.begun.as_ref().is_some_and(|begun| begun.beside_workloads)
        }
        _ => false,
    };
    stage.until(|did| did.last().is_some_and(begins)).await;
    stage.serve_for(Duration::from_secs(120)).await;
    assert_eq!(started(&stage.did), before, "nothing runs while the commit is on its way");
    stage.let_through().await;
    stage.until(|did| is_idle(did, "app/0")).await;
    assert_eq!(started(&stage.did), before + 1);
    assert_eq!(names(&stage).last().unwrap(), "web-pebble-ready");
    assert_eq!(stage.unit("app/0").record.begun, None);
}

#[tokio::test]
async fn units_come_and_go_with_the_view() {
    let mut stage = Stage::new(&["app/0", "app/1"]).await;
    stage.until(|did| is_idle(did, "app/0") && is_idle(did, "app/1")).await;
    stage.change(|lab| lab.remove_unit("app/1")).await;
    stage
        .until(
            |did| matches!(did.last(), Some(RunnerAction::Committed(commit)) if commit.transitions.terminate),
        )
        .await;
    let last: Vec<_> = hooks(&stage.commits()).into_iter().map(|(name, _)| name).rev().take(2).collect();
    assert_eq!(last, ["remove", "stop"]);
}

#[tokio::test(start_paused = true)]
async fn a_last_commit_whose_answer_was_lost_is_not_sent_on_and_on_until_the_frame_comes() {
    let mut stage = Stage::new(&["app/0", "app/1"]).await;
    stage.until(|did| is_idle(did, "app/0") && is_idle(did, "app/1")).await;
    let last = |stage: &Stage| stage.commits().iter().filter(|commit| commit.transitions.terminate).count();
    // The verdicts are for the stop and remove hooks.
    stage.deliveries = [CommitDelivery::Take, CommitDelivery::Take, CommitDelivery::Lose].into();
    stage.change(|lab| lab.remove_unit("app/1")).await;
    stage
        .until(|did| {
            let last = |did: &&RunnerAction| matches!(did, RunnerAction::Committed(commit) if commit.transitions.terminate);
            did.iter().filter(last).count() == 2
        })
        .await;
    // The unit is gone, so the controller refuses its commits.
    assert!(stage.lab.unit("app/1").is_err());
    stage.serve_for(Duration::from_secs(10)).await;
    assert_eq!(last(&stage), 2, "once, and once again");
    stage.publish().await;
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(last(&stage), 2);
}

#[tokio::test]
async fn a_runner_that_is_told_to_ends() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| did.iter().any(|did| matches!(did, RunnerAction::Started(..)))).await;
    stage.send(ToRunner::Exit).await;
    assert!(stage.runner.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_runner_that_gets_a_signal_says_that_it_ends_on_purpose() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| did.iter().any(|did| matches!(did, RunnerAction::Started(..)))).await;
    stage.terminate.cancel();
    stage.until(|did| matches!(did.last(), Some(RunnerAction::Left(_)))).await;
    assert!(stage.runner.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_runner_without_a_keeper_ends() {
    let mut stage = Stage::new(&["app/0"]).await;
    stage.until(|did| did.iter().any(|did| matches!(did, RunnerAction::Started(..)))).await;
    assert!(stage.hang_up().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_runner_with_nothing_due_offers_to_exit_although_it_looks_at_the_clock_meanwhile() {
    let mut stage = Stage::new(&["app/0", "app/1"]).await;
    stage.until(|did| matches!(did.last(), Some(RunnerAction::Offered))).await;
    assert!(is_idle(&stage.did[..stage.did.len() - 1], "app/0"));
}
