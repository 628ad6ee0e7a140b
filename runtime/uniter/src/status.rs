//! Statuses that are set for the charm, not by it (`docs/hook-model.md` 1.4, 1.9).

use periapt_host_api::{
    Digest, UnitName,
    commit::EarlyEffect,
    event::Event,
    logs::LogLevel,
    record::{HookStep, Operation, UnitRecord},
    status::{AgentStatus, StatusInfo, WorkloadStatus},
    view::View,
};
use serde_json::{Map, Value};

use crate::{HookRun, retry};

/// What is to be sent before a hook runs: that the agent executes it, but not for update-status (ST-4), and the
/// workload's status at the turning points of its life.
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

/// What follows a hook that succeeded; `record` is the one after it.
pub(crate) fn after_hook(event: &Event, record: &UnitRecord) -> Option<EarlyEffect> {
    match event {
        Event::Start if !record.status_set => Some(workload(WorkloadStatus::Unknown, "")),
        Event::Stop => Some(maintenance("")),
        Event::Remove => Some(workload(WorkloadStatus::Terminated, "")),
        _ => None,
    }
}

/// The agent's status while a hook has failed.
pub(crate) fn hook_failed(event: &Event) -> EarlyEffect {
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
    agent(AgentStatus::Error, format!("hook failed: \"{event}\""), data)
}

/// The agent's status while a charm could not be brought into place (U-33). Of an upgrade it begins with Juju's text; the
/// reason follows, and stands in the data, too.
pub(crate) fn deploy_failed(is_upgrade: bool, reason: &str) -> EarlyEffect {
    let what = if is_upgrade { "upgrade failed" } else { "deployment failed" };
    let data = Map::from_iter([("reason".to_owned(), Value::from(reason))]);
    agent(AgentStatus::Error, format!("{what}: {reason}"), data)
}

/// What a unit says that waits for a charm which its host does not get: nothing is wrong with unit or charm, and the host
/// tries again. Juju's agent is `failed`, too, while it cannot download or unpack a charm.
pub fn charm_away(unit: &UnitName, charm: Digest, reason: &str) -> [EarlyEffect; 2] {
    let message = retry::cut(&format!("charm {} not available yet, retrying: {reason}", charm.short()));
    let log = EarlyEffect::Log {
        level: LogLevel::Warning,
        module: format!("unit.{unit}.uniter"),
        message: message.clone(),
    };
    [log, agent(AgentStatus::Failed, message, Map::new())]
}

/// What takes [`charm_away`] back: the failure that the unit's record holds, or else the status before it. None if the next
/// hook says what the agent does, as it has to.
pub fn charm_arrived(record: &UnitRecord, before: &StatusInfo<AgentStatus>) -> Option<EarlyEffect> {
    // Not by the status before: a runner that began while this was shown saw no other.
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

/// The failure that a unit's record holds, where [`charm_away`] hides it: the runner that said so ended before it took it
/// back, and nothing that is due asks for the charm. To be sent on [`Decision::Wait`](crate::Decision::Wait).
pub fn hidden_failure(view: &View, unit: &UnitName) -> Option<EarlyEffect> {
    let unit = view.units.get(unit).filter(|unit| unit.agent_status.status == AgentStatus::Failed)?;
    failure(&unit.record)
}

/// The status of an agent whose unit failed at something, as it was said when it did.
fn failure(record: &UnitRecord) -> Option<EarlyEffect> {
    match &record.operation {
        Operation::Hook { event, step: HookStep::Failed(_) } => Some(hook_failed(event)),
        Operation::DeployFailed { failure, .. } => {
            Some(deploy_failed(record.charm.is_some(), &failure.message))
        }
        Operation::Hook { step: HookStep::Queued, .. } | Operation::Continue => None,
    }
}

/// A line in the unit's log about a failure.
pub(crate) fn failure_log(unit: &UnitName, what: &str, message: &str) -> EarlyEffect {
    EarlyEffect::Log {
        level: LogLevel::Error,
        module: format!("unit.{unit}.uniter"),
        message: format!("{what} failed: {message}"),
    }
}

/// That the agent is idle, to be sent on [`Decision::Idle`](crate::Decision::Idle); none if it says so already
/// (U-6).
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
