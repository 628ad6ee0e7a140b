//! Tests of charms that the host cannot get.

use std::time::Duration;

use periapt_host_api::{Digest, action::TaskOutcome, commit::EarlyEffect, status::AgentStatus};

use super::stage::{RunnerAction, Stage, add_unit_beside, charm, hooks, is_idle};

const UNIT: &str = "app/0";

/// Returns the digest of the application's charm.
fn wanted(stage: &Stage) -> Digest {
    stage.lab.state().unwrap().application(&"app".parse().unwrap()).unwrap().charm.digest
}

/// Returns the messages of the unit's agent statuses of a kind.
fn messages_of(did: &[RunnerAction], of: AgentStatus) -> Vec<String> {
    let items = did.iter().flat_map(|did| match did {
        RunnerAction::Early(_, items) => items.as_slice(),
        RunnerAction::Committed(commit) => commit.early.as_slice(),
        _ => &[],
    });
    items
        .filter_map(|item| match &item.effect {
            EarlyEffect::AgentStatus { status, message, .. } if *status == of => Some(message.clone()),
            _ => None,
        })
        .collect()
}

fn text(charm: Digest, reason: &str) -> String {
    format!("charm {} not available yet, retrying: {reason}", charm.short())
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_charm_away_is_seen_in_the_units_status_until_it_comes() {
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&stage);
    stage.away.insert(charm, "it is damaged".to_owned());
    stage.until(|did| !messages_of(did, AgentStatus::Failed).is_empty()).await;
    assert_eq!(stage.unit(UNIT).agent_status.status, AgentStatus::Failed);
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(
        messages_of(&stage.did, AgentStatus::Failed),
        [text(charm, "it is damaged")],
        "the same is said once"
    );
    stage.away.insert(charm, "the disk is full".to_owned());
    stage.until(|did| messages_of(did, AgentStatus::Failed).len() == 2).await;
    assert_eq!(stage.unit(UNIT).agent_status.message, text(charm, "the disk is full"));
    assert_eq!(stage.commits().len(), 0);
    stage.away.clear();
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(stage.unit(UNIT).agent_status.message, "");
    assert_eq!(messages_of(&stage.did, AgentStatus::Failed).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_charm_that_comes_soon_is_not_told_of() {
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&stage);
    stage.away.insert(charm, "the controller is away".to_owned());
    stage.serve_for(Duration::from_secs(1)).await;
    stage.away.clear();
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(messages_of(&stage.did, AgentStatus::Failed), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_unit_whose_charm_does_not_come_goes_when_it_is_to() {
    let mut stage = Stage::new(&[UNIT]).await;
    stage.until(|did| is_idle(did, UNIT)).await;
    let other = charm(2);
    stage.away.insert(other.digest(), "it is damaged".to_owned());
    stage.change(|lab| lab.refresh("app", &other)).await;
    stage.until(|did| !messages_of(did, AgentStatus::Failed).is_empty()).await;
    stage.change(|lab| lab.remove_unit(UNIT)).await;
    let gone =
        |did: &RunnerAction| matches!(did, RunnerAction::Committed(commit) if commit.transitions.terminate);
    stage.until(|did| did.iter().any(gone)).await;
    let last: Vec<_> = hooks(&stage.commits()).into_iter().map(|(name, _)| name).rev().take(2).collect();
    assert_eq!(last, ["remove", "stop"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_unit_whose_charm_does_not_come_is_removed_at_once_and_the_runner_says_no_more_of_it() {
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&stage);
    stage.away.insert(charm, "it is damaged".to_owned());
    stage.until(|did| !messages_of(did, AgentStatus::Failed).is_empty()).await;
    stage.change(|lab| lab.remove_unit(UNIT)).await;
    assert!(stage.lab.unit(UNIT).is_err());
    stage.until(|did| matches!(did.last(), Some(RunnerAction::Offered))).await;
    assert_eq!((messages_of(&stage.did, AgentStatus::Failed).len(), stage.commits().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_unit_goes_back_to_the_charm_that_it_has_if_the_other_does_not_come() {
    let mut stage = Stage::new(&[UNIT]).await;
    stage.until(|did| is_idle(did, UNIT)).await;
    let other = charm(2);
    stage.away.insert(other.digest(), "it is damaged".to_owned());
    stage.change(|lab| lab.refresh("app", &other)).await;
    stage.until(|did| !messages_of(did, AgentStatus::Failed).is_empty()).await;
    assert_eq!(stage.unit(UNIT).agent_status.message, text(other.digest(), "it is damaged"));
    stage.change(|lab| lab.refresh("app", &charm(1))).await;
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(stage.unit(UNIT).agent_status.message, "");
    assert_eq!(stage.unit(UNIT).record.charm.unwrap().digest, charm(1).digest());
}

#[tokio::test(start_paused = true)]
async fn a_unit_whose_charm_was_here_before_says_so_when_its_next_hook_is_due() {
    let mut stage = settled_without_charm().await;
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(messages_of(&stage.did, AgentStatus::Failed), [""; 0]);
    stage.configure("app").await;
    stage.until(|did| !messages_of(did, AgentStatus::Failed).is_empty()).await;
    assert_eq!(stage.commits().len(), 0);
    stage.away.clear();
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(stage.commits().len(), 1, "config-changed");
}

/// Creates a settled unit of an earlier runner, on a host that has lost its charm and cannot get it again.
async fn settled_without_charm() -> Stage {
    let mut rehearsal = Stage::new(&[UNIT]).await;
    rehearsal.until(|did| is_idle(did, UNIT)).await;
    let mut stage = rehearsal.again().await;
    let charm = wanted(&stage);
    stage.away.insert(charm, "it is damaged".to_owned());
    stage
}

#[tokio::test(start_paused = true)]
async fn a_script_runs_although_the_charm_does_not_arrive() {
    let mut stage = settled_without_charm().await;
    stage.run_script(UNIT, "status-get").await;
    let end = |did: &RunnerAction| match did {
        RunnerAction::Committed(commit) => commit.transitions.end_task.clone(),
        _ => None,
    };
    stage.until(|did| did.iter().any(|did| end(did).is_some())).await;
    let end = stage.did.iter().find_map(end).unwrap();
    assert_eq!((end.outcome, end.results.stdout.as_str()), (TaskOutcome::Completed, "active\n"));
}

/// A unit whose hook fails, because another unit on its machine has opened the same port.
const SECOND: &str = "app/2";

/// A time at which a failed hook is due again, and update-status is not.
const RETRIED: Duration = Duration::from_secs(60);

/// Creates a unit with a failed hook. An earlier runner has reported that its charm is not available.
async fn failed_and_hidden(retries: bool) -> Stage {
    let mut first = Stage::new(&[UNIT]).await;
    first.until(|did| is_idle(did, UNIT)).await;
    let second = first.change(|lab| add_unit_beside(lab, UNIT)).await;
    assert_eq!(second.to_string(), SECOND);
    first.until(|did| !messages_of(did, AgentStatus::Error).is_empty()).await;
    let mut stage = first.again_after(RETRIED).await;
    let charm = wanted(&stage);
    stage.away.insert(charm, "it is damaged".to_owned());
    stage.until(|did| !messages_of(did, AgentStatus::Failed).is_empty()).await;
    stage.lab.configure_model(&[("automatically-retry-hooks", &retries.to_string())]).unwrap();
    let mut stage = stage.again_after(RETRIED).await;
    stage.away.insert(charm, "it is damaged".to_owned());
    assert_eq!(stage.unit(SECOND).agent_status.status, AgentStatus::Failed);
    stage
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_a_charm_on_its_way_hid_is_seen_again_after_the_runner_restarts() {
    let mut stage = failed_and_hidden(false).await;
    stage.until(|did| !messages_of(did, AgentStatus::Error).is_empty()).await;
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(messages_of(&stage.did, AgentStatus::Error), ["hook failed: \"config-changed\""]);
    assert_eq!(stage.unit(SECOND).agent_status.status, AgentStatus::Error);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_was_hidden_before_the_runner_began_is_seen_once_nothing_waits_for_the_charm() {
    let mut stage = failed_and_hidden(true).await;
    stage.until(|did| !messages_of(did, AgentStatus::Failed).is_empty()).await;
    stage.change(|lab| lab.configure_model(&[("automatically-retry-hooks", "false")])).await;
    stage.until(|did| !messages_of(did, AgentStatus::Error).is_empty()).await;
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(messages_of(&stage.did, AgentStatus::Error), ["hook failed: \"config-changed\""]);
    assert_eq!(stage.unit(SECOND).agent_status.status, AgentStatus::Error);
}
