//! Shown statuses, which can differ from those that were set.

use std::collections::BTreeMap;

use periapt_host_api::{
    Digest, Timestamp,
    status::{AgentStatus, Life, StatusInfo, StatusText, WorkloadStatus, derive_application_status},
};

use crate::{
    entity::{Application, Unit},
    root::{ModelState, Root},
};

/// The message for an agent that is not connected.
pub(crate) const NOT_COMMUNICATING: &str = "agent is not communicating with the server";

/// Returns a unit's workload and agent status for display (ST-1).
pub fn shown_statuses(
    root: &Root,
    state: &ModelState,
    unit: &Unit,
    lease_now_ms: u64,
) -> (StatusInfo<WorkloadStatus>, StatusInfo<AgentStatus>) {
    let workload = with_hook_error(unit);
    let mut agent = unit.agent_status.clone();
    if is_hook_error(unit) {
        agent = StatusInfo::new(AgentStatus::Idle, "", agent.since);
    }
    let Some(since) = lost_since(root, state, unit, lease_now_ms) else { return (workload, agent) };
    let lost = StatusInfo::new(AgentStatus::Lost, NOT_COMMUNICATING, since);
    match workload.status {
        WorkloadStatus::Error | WorkloadStatus::Terminated => (workload, lost),
        _ => {
            let message = match state.storages_of(&unit.name).find_map(|storage| storage.agent.as_ref()) {
                // The unit cannot run on any other agent.
                Some(agent) => format!("waits for agent {agent}, where its storage lies"),
                None => format!("agent lost, see 'periapt show-status-log {}'", unit.name),
            };
            (StatusInfo::new(WorkloadStatus::Unknown, message, since), lost)
        }
    }
}

/// Returns the time since when a unit's agent is gone. Returns none if the agent is alive, or if the unit cannot be
/// lost: it is dead, not yet allocated, or in its install hook.
fn lost_since(root: &Root, state: &ModelState, unit: &Unit, lease_now_ms: u64) -> Option<Timestamp> {
    let agent = state.agent_of(unit)?;
    let installing = !unit.record.installed && unit.agent_status.status == AgentStatus::Executing;
    let allocating = unit.agent_status.status == AgentStatus::Allocating;
    if unit.life == Life::Dead || installing || allocating || root.is_alive(agent, lease_now_ms) {
        return None;
    }
    Some(root.presence(agent).map_or(unit.agent_status.since, |presence| presence.last_seen))
}

/// Returns the workload status, or the hook error, which is stored in the agent status (ST-1).
pub(crate) fn with_hook_error(unit: &Unit) -> StatusInfo<WorkloadStatus> {
    if !is_hook_error(unit) {
        return unit.workload_status.clone();
    }
    let error = &unit.agent_status;
    StatusInfo {
        status: WorkloadStatus::Error,
        message: error.message.clone(),
        data: error.data.clone(),
        since: error.since,
    }
}

/// Returns true if the agent status has a hook error. A unit without a machine has run no hook: its error says why it
/// could not be placed (Q08).
fn is_hook_error(unit: &Unit) -> bool {
    unit.agent_status.status == AgentStatus::Error && unit.machine.is_some()
}

/// Returns an application's status for display: the one that its leader set, or the worst of its units' (ST-2).
pub fn shown_application_status(
    root: &Root,
    state: &ModelState,
    application: &Application,
    lease_now_ms: u64,
) -> StatusInfo<WorkloadStatus> {
    if let Some(set) = &application.status {
        return set.clone();
    }
    let units = state.units_of(&application.name);
    let shown: Vec<_> = units.map(|unit| shown_statuses(root, state, unit, lease_now_ms).0).collect();
    derive_application_status(&shown, application.created_at)
}

/// Returns a charm's name for lists: `local:NAME-REV`.
pub(crate) fn charm_url(root: &Root, state: &ModelState, digest: &Digest) -> String {
    let name = root.charm(digest).map(|charm| charm.meta.name.as_str()).unwrap_or_default();
    format!("local:{name}-{}", state.charm(digest).map_or(0, |charm| charm.revision))
}

/// Returns a status as text.
pub(crate) fn text<S: ToString>(status: StatusInfo<S>) -> StatusText {
    StatusText {
        current: status.status.to_string(),
        message: status.message,
        since: Some(status.since),
        version: String::new(),
    }
}

/// Returns a life as text; empty for alive.
pub(crate) fn life_text(life: Life) -> String {
    match life {
        Life::Alive => String::new(),
        Life::Dying | Life::Dead => life.to_string(),
    }
}

/// Groups values by their first part.
pub(crate) fn group<V>(pairs: impl IntoIterator<Item = (String, V)>) -> BTreeMap<String, Vec<V>> {
    let mut groups: BTreeMap<String, Vec<V>> = BTreeMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}
