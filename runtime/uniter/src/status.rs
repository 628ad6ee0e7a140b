//! The statuses that the uniter sets for the charm (`docs/hook-model.md` 1.4, 1.9).

use periapt_host_api::{
    Digest, UnitName,
    commit::EarlyEffect,
    event::Event,
    logs::LogLevel,
    record::{HookFailure, HookStep, Operation, UnitRecord},
    status::{AgentStatus, StatusInfo, WorkloadStatus},
    view::View,
};
use serde_json::{Map, Value};

use crate::{DeployKind, HookRun, retry};

/// Returns the statuses before a hook: the executing agent, except for update-status (ST-4), and the workload's status
/// at some points of the unit's life.
pub fn before_hook(run: &HookRun) -> Vec<EarlyEffect> {
    let mut effects = Vec::new();
    if let Event::Action { name, .. } = &run.event {
        return vec![agent(AgentStatus::Executing, format!("running action {name}"), Map::new())];
    }
    if run.event != Event::UpdateStatus {
        let message = match run.event.remote_unit() {
            Some(unit) => format!("running {} hook for {unit}", run.event),
            None => format!("running {} hook", run.event),
        };
        effects.push(agent(AgentStatus::Executing, message, Map::new()));
    }
    match run.event {
        Event::Install if !run.record.status_set => effects.push(maintenance("installing charm software")),
        Event::Stop => effects.push(maintenance("stopping charm software")),
        Event::Remove => effects.push(maintenance("cleaning up prior to charm deletion")),
        _ => {}
    }
    effects
}

/// Returns the status after a successful hook; `record` is the one after it.
pub(crate) fn after_hook(event: &Event, record: &UnitRecord) -> Option<EarlyEffect> {
    match event {
        Event::Start if !record.status_set => Some(workload(WorkloadStatus::Unknown, "")),
        Event::Stop => Some(maintenance("")),
        Event::Remove => Some(workload(WorkloadStatus::Terminated, "")),
        _ => None,
    }
}

/// Returns the agent's status for a failed hook. Its text is Juju's; the reason of a hook that was cut short follows.
pub(crate) fn hook_failed(event: &Event, failure: &HookFailure) -> EarlyEffect {
    let mut data = Map::new();
    data.insert("hook".to_owned(), event.hook_name().into());
    if let Some(relation) = event.relation() {
        data.insert("relation-id".to_owned(), relation.relation.0.into());
    }
    if let Some(unit) = event.remote_unit() {
        data.insert("remote-unit".to_owned(), unit.to_string().into());
    }
    if let Some(secret) = event.secret() {
        data.insert("secret-uri".to_owned(), secret.id.uri().into());
        if let Some(label) = &secret.label {
            data.insert("secret-label".to_owned(), label.clone().into());
        }
    }
    let failed = format!("hook failed: \"{event}\"");
    let message = match failure.cut_short {
        true => format!("{failed}: {}", failure.message),
        false => failed,
    };
    agent(AgentStatus::Error, message, data)
}

/// Returns the agent's status for a failed deployment (U-33). For an upgrade it starts with Juju's text; the reason
/// follows, and is also in the data.
pub(crate) fn deploy_failed(kind: DeployKind, reason: &str) -> EarlyEffect {
    let what = match kind {
        DeployKind::First => "deployment failed",
        DeployKind::Upgrade => "upgrade failed",
    };
    let data = Map::from_iter([("reason".to_owned(), Value::from(reason))]);
    agent(AgentStatus::Error, format!("{what}: {reason}"), data)
}

/// Returns the log line and the status of a unit whose charm does not arrive. Neither unit nor charm is at fault, and
/// the host retries. Juju's agent is `failed`, too, while it cannot download or unpack a charm.
pub fn charm_away(unit: &UnitName, charm: Digest, reason: &str) -> [EarlyEffect; 2] {
    let message = retry::truncated(&format!("charm {} not available yet, retrying: {reason}", charm.short()));
    let log = EarlyEffect::Log {
        level: LogLevel::Warning,
        module: format!("unit.{unit}.uniter"),
        message: message.clone(),
    };
    [log, agent(AgentStatus::Failed, message, Map::new())]
}

/// Returns the status that replaces that of [`charm_away`]: the failure in the unit's record, or else the status
/// before. Returns none if the next hook sets a status anyway.
pub fn charm_arrived(record: &UnitRecord, before: &StatusInfo<AgentStatus>) -> Option<EarlyEffect> {
    // The status before may be the `failed` of an earlier runner, so the record's failure comes first.
    if let Some(failed) = failure(record) {
        return Some(failed);
    }
    match before.status {
        AgentStatus::Executing | AgentStatus::Idle | AgentStatus::Error => {
            Some(agent(before.status, before.message.clone(), before.data.clone()))
        }
        AgentStatus::Allocating | AgentStatus::Failed | AgentStatus::Lost => None,
    }
}

/// Returns the failure in a unit's record if the status of [`charm_away`] hides it: a runner ended before it replaced
/// that status, and no due work needs the charm. To be sent on [`Decision::Wait`](crate::Decision::Wait).
pub fn hidden_failure(view: &View, unit: &UnitName) -> Option<EarlyEffect> {
    let unit = view.units.get(unit).filter(|unit| unit.agent_status.status == AgentStatus::Failed)?;
    failure(&unit.record)
}

/// Returns the agent's status for the failure in a record.
fn failure(record: &UnitRecord) -> Option<EarlyEffect> {
    match &record.operation {
        Operation::Hook { event, step: HookStep::Failed(failure) } => Some(hook_failed(event, failure)),
        Operation::DeployFailed { failure, .. } => {
            Some(deploy_failed(DeployKind::of(record), &failure.message))
        }
        Operation::Hook { step: HookStep::Queued, .. } | Operation::Continue => None,
    }
}

/// Returns a log line about a failure.
pub(crate) fn failure_log(unit: &UnitName, what: &str, message: &str) -> EarlyEffect {
    EarlyEffect::Log {
        level: LogLevel::Error,
        module: format!("unit.{unit}.uniter"),
        message: format!("{what} failed: {message}"),
    }
}

/// Returns the idle status, to be sent on [`Decision::Idle`](crate::Decision::Idle); none if the unit has it (U-6).
pub fn idle_effect(view: &View, unit: &UnitName) -> Option<EarlyEffect> {
    let unit = view.units.get(unit)?;
    (unit.agent_status.status != AgentStatus::Idle)
        .then(|| agent(AgentStatus::Idle, String::new(), Map::new()))
}

fn agent(status: AgentStatus, message: String, data: Map<String, Value>) -> EarlyEffect {
    EarlyEffect::AgentStatus { status, message, data }
}

fn workload(status: WorkloadStatus, message: &str) -> EarlyEffect {
    EarlyEffect::UnitStatus { status, message: message.to_owned() }
}

fn maintenance(message: &str) -> EarlyEffect {
    workload(WorkloadStatus::Maintenance, message)
}
