//! What `status` shows: Juju's derivations (`hook-model.md` 7.5).

use std::collections::BTreeMap;

use periapt_host_api::{
    CharmDigest, JUJU_VERSION, ModelUuid, Timestamp,
    agent::Register,
    status::{
        AgentStatus, ControllerStatus, FullStatus, Life, MachineStatus, ModelStatus, NetworkInterface,
        StatusHistoryEntry, StatusInfo, StatusKind, StatusText, WorkloadStatus, derive_application_status,
    },
};

use crate::{
    entity::{Application, Machine, Unit},
    firewall::ingress_rules,
    root::{ModelState, Root},
    worker::windup,
};

mod application;
mod offer;
mod relation;
mod storage;

pub use storage::combined_storage;

/// What status shows beside the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusContext {
    /// The controller's clock.
    pub now: Timestamp,
    /// Periapt's version.
    pub version: String,
    /// The engine and its version.
    pub engine: String,
    /// What is wrong with the controller itself.
    pub problems: Vec<String>,
}

/// What `status` shows of a model; none if there is no such model.
pub fn full_status(root: &Root, model: &ModelUuid, context: &StatusContext) -> Option<FullStatus> {
    let state = root.model(model)?;
    let machines = state
        .machines()
        .map(|machine| (machine.id.to_string(), self::machine(root, state, machine, context)));
    let applications = state.applications().map(|application| {
        (application.name.to_string(), application::status(root, state, application, context.now))
    });
    Some(FullStatus {
        model: self::model(root, state),
        machines: machines.collect(),
        applications: applications.collect(),
        remote_applications: offer::consumed(root, state, context.now),
        offers: offer::offers(root, state),
        relations: state
            .relations()
            .filter(|relation| relation.life != Life::Dead)
            .map(|found| relation::status(state, found))
            .collect(),
        storage: Some(storage::combined(state)),
        controller: ControllerStatus {
            timestamp: context.now,
            periapt_version: context.version.clone(),
            engine: context.engine.clone(),
            problems: context.problems.clone(),
        },
    })
}

fn model(root: &Root, state: &ModelState) -> ModelStatus {
    let model = state.model();
    let current = match model.life {
        Life::Alive => "available",
        Life::Dying | Life::Dead => "destroying",
    };
    ModelStatus {
        name: model.name.to_string(),
        kind: "iaas".to_owned(),
        controller: root.controller().map(|controller| controller.name.clone()).unwrap_or_default(),
        cloud: "periapt".to_owned(),
        region: "default".to_owned(),
        version: JUJU_VERSION.to_owned(),
        model_status: StatusText {
            current: current.to_owned(),
            message: windup::waits_for(state).join(", "),
            since: Some(model.life_since),
            version: String::new(),
        },
    }
}

fn machine(root: &Root, state: &ModelState, machine: &Machine, context: &StatusContext) -> MachineStatus {
    let host = root.agent(&machine.agent).map(|agent| &agent.host);
    let addresses = host.map(|host| host.addresses.clone()).unwrap_or_default();
    let (current, message, since) = if root.is_alive(&machine.agent, context.now) {
        ("started", "", machine.created_at)
    } else {
        let since = root.presence(&machine.agent).map(|presence| presence.last_seen);
        ("down", NOT_COMMUNICATING, since.unwrap_or(machine.created_at))
    };
    MachineStatus {
        juju_status: StatusText {
            current: current.to_owned(),
            message: message.to_owned(),
            since: Some(since),
            version: host.map(|_| JUJU_VERSION.to_owned()).unwrap_or_default(),
        },
        hostname: host.map(|host| host.hostname.clone()).unwrap_or_default(),
        dns_name: addresses.first().cloned().unwrap_or_default(),
        ip_addresses: addresses,
        instance_id: machine.agent.to_string(),
        machine_status: StatusText {
            current: "running".to_owned(),
            since: Some(machine.created_at),
            ..StatusText::default()
        },
        modification_status: StatusText {
            current: "idle".to_owned(),
            since: Some(machine.created_at),
            ..StatusText::default()
        },
        base: Default::default(),
        network_interfaces: host.map(|host| network_interfaces(state, host)).unwrap_or_default(),
        life: life_text(machine.life),
        hardware: host.map(hardware).unwrap_or_default(),
        ingress_rules: ingress_rules(state, &machine.id),
    }
}

/// The interfaces of a host, each with the space that its first address is in.
fn network_interfaces(state: &ModelState, host: &Register) -> BTreeMap<String, NetworkInterface> {
    let spaces = &state.model().spaces;
    let shown = host.interfaces.iter().map(|interface| {
        let space = interface.addresses.first().map(|first| spaces.of(first.address).to_owned());
        let shown = NetworkInterface {
            ip_addresses: interface.addresses.iter().map(|at| at.address.to_string()).collect(),
            mac_address: interface.mac.clone(),
            space: space.unwrap_or_default(),
            is_up: true,
        };
        (interface.name.clone(), shown)
    });
    shown.collect()
}

/// `cores=4 availability-zone=z1`, as far as the agent knows.
fn hardware(host: &Register) -> String {
    let cores = (host.cores > 0).then(|| format!("cores={}", host.cores));
    let zone = Some(&host.availability_zone).filter(|zone| !zone.is_empty());
    let zone = zone.map(|zone| format!("availability-zone={zone}"));
    cores.into_iter().chain(zone).collect::<Vec<_>>().join(" ")
}

/// What is known of a machine's past, the oldest first: it is there from when it was made, for an agent hosts it, and
/// down while that is away.
pub fn machine_history(root: &Root, machine: &Machine, now: Timestamp) -> Vec<StatusHistoryEntry> {
    let entry = |status: &str, message: &str, since| StatusHistoryEntry {
        status: status.to_owned(),
        message: message.to_owned(),
        data: serde_json::Map::new(),
        since,
        kind: StatusKind::Machine,
    };
    let mut entries = vec![entry("started", "", machine.created_at)];
    if !root.is_alive(&machine.agent, now) {
        let since = root.presence(&machine.agent).map(|presence| presence.last_seen);
        entries.push(entry("down", NOT_COMMUNICATING, since.unwrap_or(machine.created_at)));
    }
    entries
}

const NOT_COMMUNICATING: &str = "agent is not communicating with the server";

/// A unit's workload and agent status as they are shown (ST-1).
pub fn shown_statuses(
    root: &Root,
    state: &ModelState,
    unit: &Unit,
    now: Timestamp,
) -> (StatusInfo<WorkloadStatus>, StatusInfo<AgentStatus>) {
    let workload = with_hook_error(unit);
    let mut agent = unit.agent_status.clone();
    if is_hook_error(unit) {
        agent = StatusInfo::new(AgentStatus::Idle, "", agent.since);
    }
    let Some(since) = lost_since(root, state, unit, now) else { return (workload, agent) };
    let lost = StatusInfo::new(AgentStatus::Lost, NOT_COMMUNICATING, since);
    match workload.status {
        WorkloadStatus::Error | WorkloadStatus::Terminated => (workload, lost),
        _ => {
            let message = match state.storages_of(&unit.name).find_map(|storage| storage.agent.as_ref()) {
                // It runs nowhere else.
                Some(agent) => format!("waits for agent {agent}, where its storage lies"),
                None => format!("agent lost, see 'periapt show-status-log {}'", unit.name),
            };
            (StatusInfo::new(WorkloadStatus::Unknown, message, since), lost)
        }
    }
}

/// Since when a unit's agent is away; none if it is there, or if the unit cannot be lost: dead, not yet looked
/// after, or in its install hook.
fn lost_since(root: &Root, state: &ModelState, unit: &Unit, now: Timestamp) -> Option<Timestamp> {
    let agent = state.agent_of(unit)?;
    let installing = !unit.record.installed && unit.agent_status.status == AgentStatus::Executing;
    let allocating = unit.agent_status.status == AgentStatus::Allocating;
    if unit.life == Life::Dead || installing || allocating || root.is_alive(agent, now) {
        return None;
    }
    Some(root.presence(agent).map_or(unit.agent_status.since, |presence| presence.last_seen))
}

/// The workload status, overlaid by a hook error, which is kept on the agent's side (ST-1).
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

/// A unit without a machine has run no hook: its error is that it could not be placed (Q08).
fn is_hook_error(unit: &Unit) -> bool {
    unit.agent_status.status == AgentStatus::Error && unit.machine.is_some()
}

/// An application's status as it is shown: what its leader set, or the worst of its units' (ST-2).
pub fn shown_application_status(
    root: &Root,
    state: &ModelState,
    application: &Application,
    now: Timestamp,
) -> StatusInfo<WorkloadStatus> {
    if let Some(set) = &application.status {
        return set.clone();
    }
    let units = state.units_of(&application.name);
    let shown: Vec<_> = units.map(|unit| shown_statuses(root, state, unit, now).0).collect();
    derive_application_status(&shown, application.created_at)
}

/// A charm as lists name it: `local:NAME-REV`.
pub(crate) fn charm_url(root: &Root, state: &ModelState, digest: &CharmDigest) -> String {
    let name = root.charm(digest).map(|charm| charm.meta.name.as_str()).unwrap_or_default();
    format!("local:{name}-{}", state.charm(digest).map_or(0, |charm| charm.revision))
}

fn text<S: ToString>(status: StatusInfo<S>) -> StatusText {
    StatusText {
        current: status.status.to_string(),
        message: status.message,
        since: Some(status.since),
        version: String::new(),
    }
}

fn life_text(life: Life) -> String {
    match life {
        Life::Alive => String::new(),
        Life::Dying | Life::Dead => life.to_string(),
    }
}

/// Groups values by their first part.
fn group<V>(pairs: impl IntoIterator<Item = (String, V)>) -> BTreeMap<String, Vec<V>> {
    let mut groups: BTreeMap<String, Vec<V>> = BTreeMap::new();
    for (key, value) in pairs {
        groups.entry(key).or_default().push(value);
    }
    groups
}
