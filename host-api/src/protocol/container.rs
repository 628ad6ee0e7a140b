//! The state of a unit's containers, as the pods tell the keeper and the keeper the controller (decision 93).
//!
//! Workloads are strangers: what they make grow here is cut before it is sent, and each receiver refuses or cuts what is
//! larger than the bounds of this module.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ContainerName, Digest, ResourceName, Timestamp};

/// The most bytes of one pod's services and checks, as JSON. A report of a pod is a line of less than 4 KiB.
pub const MAX_POD_STATE_BYTES: usize = 3 << 10;

/// The most bytes of one unit's report, as JSON: 16 containers of 3 KiB with their reasons, and the ports.
pub const MAX_WORKLOADS_BYTES: usize = 96 << 10;

/// The most ports on which an agent listens for one unit: the first ones of its rules. A charm may open all 65,535 in one
/// call, and each port takes a socket for each address of the host.
pub const MAX_FORWARDED_PORTS: usize = 64;

/// The most ports of a unit that are reported as taken. The agent listens on no more ports of a unit.
pub const MAX_TAKEN_PORTS: usize = MAX_FORWARDED_PORTS;

/// The most characters of a service's or a check's name.
const MAX_NAME: usize = 64;

/// The most bytes of a text in a report.
const MAX_REASON_BYTES: usize = 400;

/// The most characters of the reason why a service does not start: several fit into a report.
const MAX_START_REASON: usize = 160;

/// The state of all containers of a unit, which replaces the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadsReport {
    /// The containers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub containers: BTreeMap<ContainerName, ContainerReport>,
    /// The open ports of the unit on which its agent cannot listen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_ports: Vec<TakenPort>,
    /// The traffic of its workloads since its agent runs them.
    #[serde(default, skip_serializing_if = "UnitTraffic::is_none")]
    pub traffic: UnitTraffic,
    /// The time at which its agent began to count processor time and traffic from zero. Reports with the same time continue
    /// each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_since: Option<Timestamp>,
}

/// The connections of a unit's workloads with other units and with hosts outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct UnitTraffic {
    /// The number of connections.
    pub connections: u64,
    /// The bytes that came in.
    pub received: u64,
    /// The bytes that went out.
    pub sent: u64,
}

/// The use that a container makes of its host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct ContainerUsage {
    /// The bytes of memory, rounded up to mebibytes.
    pub memory: u64,
    /// The processor time since its agent began to count, over all its starts, in milliseconds.
    pub cpu_ms: u64,
    /// The bytes in the storage that it can write.
    pub storage: u64,
}

/// The state of one container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ContainerReport {
    /// The driver that runs it, as `agent run --workloads` names it; none if the agent has none for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<ReportedDriver>,
    /// The content of the resource with its image; none of a container without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Digest>,
    /// The state of its process.
    pub state: ContainerState,
    /// The number of its starts since its agent started, or since it got another image or charm.
    pub starts: u32,
    /// The services and checks of its Pebble.
    #[serde(default, skip_serializing_if = "PodState::is_empty")]
    pub pod: PodState,
    /// The use that it makes of its host, as of a while ago; none before the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ContainerUsage>,
}

/// A container of a unit, as `show-unit` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ContainerDetails {
    /// The image that it runs or is to run; none of a WebAssembly workload, and without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ContainerImage>,
    /// The last report of its agent; none if the agent is gone, or has not reported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<ContainerReport>,
}

/// The image of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ContainerImage {
    /// The resource that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<ResourceName>,
    /// The revision of the resource.
    pub revision: u64,
    /// The digest of the image's manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The name by which it was fetched from a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// A driver of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportedDriver {
    /// Containers of namespaces.
    Namespaces,
    /// Processes without isolation.
    Plain,
    /// WebAssembly workloads.
    Wasm,
}

/// The state of a container's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContainerState {
    /// It is being started.
    Starting,
    /// It runs.
    #[serde(rename_all = "kebab-case")]
    Running {
        /// The id of this start.
        boot_id: String,
    },
    /// It does not run.
    Down {
        /// The reason, for people.
        reason: String,
    },
}

/// The services and checks of a container, those in trouble first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PodState {
    /// The services of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceState>,
    /// The checks of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckState>,
    /// The number of services and checks that are left out, because there are too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
}

/// A service of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ServiceState {
    /// The service's name, cut short if it is long.
    pub name: String,
    /// The occasion of its start.
    pub startup: ReportedStartup,
    /// Its state now.
    pub current: ServiceCurrent,
    /// The number of its restarts after it ended by itself.
    pub restarts: u32,
    /// The reason why its last start failed, cut short if it is long; none if it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cannot_start: Option<String>,
}

/// The start of a service or a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReportedStartup {
    /// With its container, or with the next replan.
    Enabled,
    /// By its charm alone.
    Disabled,
}

/// The state of a service, in Pebble's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceCurrent {
    /// It runs.
    Active,
    /// It is at rest.
    Inactive,
    /// It ended by itself, and is started again after a pause.
    Backoff,
    /// It ended with an error, and stays so.
    Error,
}

/// A check of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CheckState {
    /// The check's name, cut short if it is long.
    pub name: String,
    /// The occasion of its start.
    pub startup: ReportedStartup,
    /// The result of its last runs.
    pub status: CheckStatus,
    /// The number of failures in a row when the state was reported, up to the threshold.
    pub failures: u32,
    /// The number of failures that make the check fail.
    pub threshold: u32,
}

/// The result of a check, in Pebble's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CheckStatus {
    /// It succeeds, or failed less often than its threshold.
    Up,
    /// It failed as often as its threshold.
    Down,
    /// It does not run.
    Inactive,
}

/// An open port of a unit on which its agent cannot listen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TakenPort {
    /// The TCP port.
    pub port: u16,
    /// The address of the agent's host.
    pub address: String,
    /// The reason in words: who has it.
    pub reason: String,
}

impl UnitTraffic {
    /// Returns true if nothing was counted.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl ServiceState {
    /// Returns true if it ended by itself and does not run.
    #[must_use]
    pub fn is_down(&self) -> bool {
        matches!(self.current, ServiceCurrent::Backoff | ServiceCurrent::Error)
    }
}

impl CheckState {
    /// Returns true if it fails.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.status == CheckStatus::Down
    }
}

impl PodState {
    /// Returns true if there are no services and no checks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.checks.is_empty() && self.left_out == 0
    }

    /// Cuts the state to its bounds: what is in trouble stays before the rest, and names are cut short.
    #[must_use]
    pub fn bounded(self) -> Self {
        let mut cut = Self { left_out: self.left_out, ..Self::default() };
        let mut room = MAX_POD_STATE_BYTES;
        let (mut services, mut checks) = (self.services, self.checks);
        for service in &mut services {
            service.name = short(&service.name, MAX_NAME);
            service.cannot_start =
                service.cannot_start.as_deref().map(|reason| short(reason, MAX_START_REASON));
        }
        for check in &mut checks {
            check.name = short(&check.name, MAX_NAME);
        }
        let (bad_services, services) = services.into_iter().partition::<Vec<_>, _>(ServiceState::is_down);
        let (bad_checks, checks) = checks.into_iter().partition::<Vec<_>, _>(CheckState::is_down);
        cut.take_services(bad_services, &mut room);
        cut.take_checks(bad_checks, &mut room);
        cut.take_services(services, &mut room);
        cut.take_checks(checks, &mut room);
        cut
    }

    fn take_services(&mut self, services: Vec<ServiceState>, room: &mut usize) {
        for service in services {
            match takes(&service, room) {
                true => self.services.push(service),
                false => self.left_out = self.left_out.saturating_add(1),
            }
        }
    }

    fn take_checks(&mut self, checks: Vec<CheckState>, room: &mut usize) {
        for check in checks {
            match takes(&check, room) {
                true => self.checks.push(check),
                false => self.left_out = self.left_out.saturating_add(1),
            }
        }
    }
}

impl ContainerState {
    /// Creates the state of a container that does not run, with the reason cut short if it is long.
    #[must_use]
    pub fn down(reason: &str) -> Self {
        Self::Down { reason: beginning(reason) }
    }
}

impl TakenPort {
    /// Creates a taken port, with the reason cut short if it is long.
    #[must_use]
    pub fn new(address: core::net::SocketAddr, reason: &str) -> Self {
        Self { port: address.port(), address: address.ip().to_string(), reason: beginning(reason) }
    }
}

/// Returns true if a value has room, which it takes.
fn takes(value: &impl Serialize, room: &mut usize) -> bool {
    // One more byte for the comma.
    let left = room.checked_sub(crate::size::of_json(value).saturating_add(1));
    *room = left.unwrap_or(*room);
    left.is_some()
}

fn short(text: &str, most: usize) -> String {
    const MORE: &str = "...";
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(MORE.len())).chain(MORE.chars()).collect(),
    }
}

fn beginning(text: &str) -> String {
    let end = text.floor_char_boundary(MAX_REASON_BYTES);
    text.get(..end).unwrap_or_default().to_owned()
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, current: ServiceCurrent) -> ServiceState {
        let startup = ReportedStartup::Enabled;
        let cannot_start = (current == ServiceCurrent::Error).then(|| "\u{1}".repeat(1_000));
        ServiceState { name: name.to_owned(), startup, current, restarts: u32::MAX, cannot_start }
    }

    fn check(name: &str, status: CheckStatus) -> CheckState {
        let startup = ReportedStartup::Enabled;
        CheckState { name: name.to_owned(), startup, status, failures: u32::MAX, threshold: u32::MAX }
    }

    #[test]
    fn a_state_is_cut_to_its_bounds_and_keeps_what_is_in_trouble() {
        let name = "\u{1}".repeat(255);
        let mut services = vec![service(&name, ServiceCurrent::Active); 200];
        services.push(service("db", ServiceCurrent::Backoff));
        services.push(service("web", ServiceCurrent::Error));
        let mut checks = vec![check(&name, CheckStatus::Up); 200];
        checks.push(check("page", CheckStatus::Down));
        let cut = PodState { services, checks, left_out: 0 }.bounded();
        assert!(crate::size::of_json(&cut) <= MAX_POD_STATE_BYTES + 100);
        assert_eq!((cut.services[0].name.as_str(), cut.checks[0].name.as_str()), ("db", "page"));
        let all = cut.services.len() + cut.checks.len() + usize::try_from(cut.left_out).unwrap();
        assert_eq!(all, 403);
        let reason = cut.services[1].cannot_start.as_deref().unwrap();
        assert_eq!((cut.services[1].name.as_str(), reason.chars().count()), ("web", MAX_START_REASON));
        assert_eq!(cut.clone().bounded(), cut);
    }

    #[test]
    fn reasons_are_cut_between_letters() {
        let ContainerState::Down { reason } = ContainerState::down(&"\u{e4}".repeat(1_000)) else { panic!() };
        assert!(reason.len() <= MAX_REASON_BYTES && reason.chars().all(|letter| letter == '\u{e4}'));
    }
}
