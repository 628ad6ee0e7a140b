//! Charms that the host does not get.

use std::time::Duration;

use periapt_host_api::{
    ApplicationName, CharmDigest, MachineId, TaskId, Timestamp, UnitName,
    action::{TaskOutcome, TaskStatus},
    commit::EarlyEffect,
    event::Event,
    exec::{self, ExecCommand, ExecRequest},
    record::{CharmRef, HookFailure, HookStep, Operation},
    status::{AgentStatus, Life, StatusInfo},
    view::{TaskView, UnitView},
};

use super::stage::{Did, Stage, is_idle};

const UNIT: &str = "app/0";

fn unit(stage: &mut Stage) -> &mut UnitView {
    stage.view.units.get_mut(&UNIT.parse::<UnitName>().unwrap()).unwrap()
}

fn wanted(stage: &mut Stage) -> &mut CharmRef {
    &mut stage.view.applications.get_mut(&"app".parse::<ApplicationName>().unwrap()).unwrap().charm
}

/// What the unit said of its agent with a status.
fn told(did: &[Did], of: AgentStatus) -> Vec<String> {
    let items = did.iter().flat_map(|did| match did {
        Did::Early(_, items) => items.as_slice(),
        Did::Committed(commit) => commit.early.as_slice(),
        _ => &[],
    });
    items
        .filter_map(|item| match &item.effect {
            EarlyEffect::AgentStatus { status, message, .. } if *status == of => Some(message.clone()),
            _ => None,
        })
        .collect()
}

fn text(charm: CharmDigest, reason: &str) -> String {
    format!("charm {} not available yet, retrying: {reason}", charm.short())
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_charm_away_is_seen_in_the_units_status_until_it_comes() {
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&mut stage).digest;
    stage.away.insert(charm, "it is damaged".to_owned());
    stage.until(|did| !told(did, AgentStatus::Failed).is_empty()).await;
    assert_eq!(unit(&mut stage).agent_status.status, AgentStatus::Failed);
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(
        told(&stage.did, AgentStatus::Failed),
        [text(charm, "it is damaged")],
        "the same is said once"
    );
    stage.away.insert(charm, "the disk is full".to_owned());
    stage.until(|did| told(did, AgentStatus::Failed).len() == 2).await;
    assert_eq!(unit(&mut stage).agent_status.message, text(charm, "the disk is full"));
    assert_eq!(stage.commits().len(), 0);
    stage.away.clear();
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(unit(&mut stage).agent_status.message, "");
    assert_eq!(told(&stage.did, AgentStatus::Failed).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_charm_that_comes_soon_is_not_told_of() {
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&mut stage).digest;
    stage.away.insert(charm, "the controller is away".to_owned());
    stage.serve_for(Duration::from_secs(1)).await;
    stage.away.clear();
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(told(&stage.did, AgentStatus::Failed), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_unit_whose_charm_does_not_come_goes_when_it_is_to() {
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&mut stage).digest;
    stage.away.insert(charm, "it is damaged".to_owned());
    stage.until(|did| !told(did, AgentStatus::Failed).is_empty()).await;
    unit(&mut stage).life = Life::Dying;
    stage.publish().await;
    let gone = |did: &Did| matches!(did, Did::Committed(commit) if commit.transitions.terminate);
    stage.until(|did| did.iter().any(gone)).await;
}

#[tokio::test(start_paused = true)]
async fn a_unit_goes_back_to_the_charm_that_it_has_if_the_other_does_not_come() {
    let mut stage = Stage::new(&[UNIT]).await;
    stage.until(|did| is_idle(did, UNIT)).await;
    let (before, other) = (*wanted(&mut stage), CharmDigest::of(b"another"));
    stage.away.insert(other, "it is damaged".to_owned());
    *wanted(&mut stage) = CharmRef { digest: other, modified_version: 2 };
    stage.publish().await;
    stage.until(|did| !told(did, AgentStatus::Failed).is_empty()).await;
    assert_eq!(unit(&mut stage).agent_status.message, text(other, "it is damaged"));
    *wanted(&mut stage) = before;
    stage.publish().await;
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(unit(&mut stage).agent_status.message, "");
}

#[tokio::test(start_paused = true)]
async fn a_unit_whose_charm_was_here_before_says_so_when_its_next_hook_is_due() {
    let mut rehearsal = Stage::new(&[UNIT]).await;
    rehearsal.until(|did| is_idle(did, UNIT)).await;
    let settled = unit(&mut rehearsal).clone();
    // Another agent's runner, on a host that has no charms yet.
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&mut stage).digest;
    stage.away.insert(charm, "it is damaged".to_owned());
    *unit(&mut stage) = settled;
    stage.view.machines.get_mut(&MachineId(0)).unwrap().addresses_hash.push('+');
    stage.until(|did| !told(did, AgentStatus::Failed).is_empty()).await;
    assert_eq!(stage.commits().len(), 0);
    stage.away.clear();
    stage.until(|did| is_idle(did, UNIT)).await;
    assert_eq!(stage.commits().len(), 1, "config-changed");
}

/// A unit that has settled, as another runner left it, on a host that does not get its charm.
async fn settled_without_charm() -> Stage {
    let mut rehearsal = Stage::new(&[UNIT]).await;
    rehearsal.until(|did| is_idle(did, UNIT)).await;
    let settled = unit(&mut rehearsal).clone();
    let mut stage = Stage::new(&[UNIT]).await;
    let charm = wanted(&mut stage).digest;
    stage.away.insert(charm, "it is damaged".to_owned());
    *unit(&mut stage) = settled;
    stage
}

#[tokio::test(start_paused = true)]
async fn a_script_runs_although_the_charm_does_not_arrive() {
    let mut stage = settled_without_charm().await;
    let command = ExecCommand::Script("status-get".to_owned());
    let task = TaskView {
        id: TaskId(1),
        unit: UNIT.parse().unwrap(),
        action: exec::ACTION.to_owned(),
        parameters: ExecRequest { command, relation: None, remote_unit: None }.into_parameters(),
        group: None,
        status: TaskStatus::Pending,
    };
    stage.view.tasks.insert(task.id, task);
    let end = |did: &Did| match did {
        Did::Committed(commit) => commit.transitions.end_task.clone(),
        _ => None,
    };
    stage.until(|did| did.iter().any(|did| end(did).is_some())).await;
    let end = stage.did.iter().find_map(end).unwrap();
    assert_eq!((end.outcome, end.results.stdout.as_str()), (TaskOutcome::Completed, "active\n"));
}

/// A unit whose hook failed, of which a runner that is gone said that its charm is away.
async fn failed_and_hidden(retries: bool) -> Stage {
    let mut stage = settled_without_charm().await;
    let failure = HookFailure {
        message: "no".to_owned(),
        attempts: 1,
        failed_at: Timestamp::UNIX_EPOCH,
        retry_after_ms: 5000,
    };
    let unit = unit(&mut stage);
    unit.record.operation = Operation::Hook { event: Event::ConfigChanged, step: HookStep::Failed(failure) };
    unit.agent_status = StatusInfo::new(AgentStatus::Failed, "its charm is away", Timestamp::UNIX_EPOCH);
    stage.view.model.as_mut().unwrap().config.automatically_retry_hooks = retries;
    stage
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_a_charm_on_its_way_hid_is_seen_again_after_the_runner_restarts() {
    let mut stage = failed_and_hidden(false).await;
    stage.until(|did| !told(did, AgentStatus::Error).is_empty()).await;
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(told(&stage.did, AgentStatus::Error), ["hook failed: \"config-changed\""]);
    assert_eq!(unit(&mut stage).agent_status.status, AgentStatus::Error);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_was_hidden_before_the_runner_began_is_seen_once_nothing_waits_for_the_charm() {
    let mut stage = failed_and_hidden(true).await;
    stage.until(|did| !told(did, AgentStatus::Failed).is_empty()).await;
    stage.view.model.as_mut().unwrap().config.automatically_retry_hooks = false;
    stage.publish().await;
    stage.until(|did| !told(did, AgentStatus::Error).is_empty()).await;
    stage.serve_for(Duration::from_secs(60)).await;
    assert_eq!(told(&stage.did, AgentStatus::Error), ["hook failed: \"config-changed\""]);
    assert_eq!(unit(&mut stage).agent_status.status, AgentStatus::Error);
}
