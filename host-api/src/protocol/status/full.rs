//! The answer of `status`, with Juju's field names: what its clients parse.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::storage::CombinedStorage;
use crate::{Timestamp, firewall::IngressRules, offer::RemoteEndpoint};

/// `status --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FullStatus {
    /// The model.
    pub model: ModelStatus,
    /// By number.
    pub machines: BTreeMap<String, MachineStatus>,
    /// By name.
    pub applications: BTreeMap<String, ApplicationStatus>,
    /// Consumed offers of other models, by their names in this one.
    #[serde(rename = "application-endpoints", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remote_applications: BTreeMap<String, RemoteApplicationStatus>,
    /// What is offered to other models, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offers: BTreeMap<String, OfferStatus>,
    /// In order of their ids; shown by `--relations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationStatus>,
    /// Storage; with nothing in it if there is none, as Juju says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<CombinedStorage>,
    /// The controller.
    pub controller: ControllerStatus,
}

/// The model's line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelStatus {
    /// Name.
    pub name: String,
    /// Always `iaas`: units live on machines.
    #[serde(rename = "type")]
    pub kind: String,
    /// The controller's name.
    pub controller: String,
    /// Always `periapt`.
    pub cloud: String,
    /// Always `default`, the one that there is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The release of Juju whose behaviour it has.
    pub version: String,
    /// Life, as a status.
    pub model_status: StatusText,
}

/// A status as text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StatusText {
    /// The word.
    pub current: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The release of Juju whose behaviour the agent has, on agent statuses.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineStatus {
    /// `pending`, `started`, `down`, ...
    pub juju_status: StatusText,
    /// The agent's host.
    pub hostname: String,
    /// Its address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dns_name: String,
    /// All addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// The agent that hosts it.
    pub instance_id: String,
    /// The instance's status.
    pub machine_status: StatusText,
    /// Always `idle`: Juju says here how the profiles of a container are applied, and there are none.
    #[serde(default)]
    pub modification_status: StatusText,
    /// The base that charms see.
    pub base: Base,
    /// Of its host, by name; none: not known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub network_interfaces: BTreeMap<String, NetworkInterface>,
    /// Life, if not alive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// What it offers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hardware: String,
    /// What its firewall is to let in: ranges of ports, and from where.
    #[serde(default, skip_serializing_if = "IngressRules::is_empty")]
    pub ingress_rules: IngressRules,
}

/// An interface of a machine's host that others may reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NetworkInterface {
    /// Its addresses.
    pub ip_addresses: Vec<String>,
    /// Six bytes as hex; may be empty.
    pub mac_address: String,
    /// The space of its first address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub space: String,
    /// Whether it is up: agents tell of no others.
    pub is_up: bool,
}

/// Where a charm runs: the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Base {
    /// `wasi`
    pub name: String,
    /// `0.2`
    pub channel: String,
}

impl Default for Base {
    fn default() -> Self {
        Self { name: "wasi".into(), channel: "0.2".into() }
    }
}

/// An application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationStatus {
    /// `local:NAME-REV`
    pub charm: String,
    /// The base.
    pub base: Base,
    /// Where the charm came from: `local`.
    pub charm_origin: String,
    /// The charm's own name.
    pub charm_name: String,
    /// Its revision in this model.
    pub charm_rev: u64,
    /// How many units it has of its own. Juju says it of Kubernetes' applications alone; whoever waits for it gets it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scale: usize,
    /// Whether ports are reachable from outside.
    pub exposed: bool,
    /// `dying`, if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// Its status.
    pub application_status: StatusText,
    /// By endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relations: BTreeMap<String, Vec<RelatedApplication>>,
    /// The principals, of a subordinate application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subordinate_to: Vec<String>,
    /// By name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, UnitStatus>,
    /// The workload's version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Space of each endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoint_bindings: BTreeMap<String, String>,
    /// The archive's digest.
    pub charm_digest: String,
    /// What it waits for before it can go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// The other end of an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelatedApplication {
    /// The other application.
    pub related_application: String,
    /// The interface.
    pub interface: String,
    /// `global` or `container`.
    pub scope: String,
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitStatus {
    /// What the charm says.
    pub workload_status: StatusText,
    /// What the agent does.
    pub juju_status: StatusText,
    /// Whether it leads its application; left out if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leader: bool,
    /// Its machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// `80/tcp`, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_ports: Vec<String>,
    /// Its machine's address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The same, under Juju's other name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub public_address: String,
    /// A subordinate's principal or a principal's subordinates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subordinates: BTreeMap<String, UnitStatus>,
    /// `dying`, if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// What it waits for before it can go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// `local:NAME-REV` of the charm that it runs, while that is not its application's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub upgrading_from: String,
}

/// A relation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelationStatus {
    /// Its number.
    pub id: u32,
    /// `APPLICATION:ENDPOINT` of the provider; of the only end, for peers.
    pub provider: String,
    /// `APPLICATION:ENDPOINT` of the requirer.
    pub requirer: String,
    /// The interface.
    pub interface: String,
    /// `regular`, `subordinate` or `peer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `joining`, `joined`, ...
    pub status: String,
    /// Why it is suspended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What it waits for before it can go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// A consumed offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RemoteApplicationStatus {
    /// `USER/MODEL.OFFER`
    pub url: String,
    /// By name.
    pub endpoints: BTreeMap<String, RemoteEndpoint>,
    /// `dying`, if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// The offered application's status; `terminated` once there is no such offer any more.
    pub application_status: StatusText,
    /// The related applications, by endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relations: BTreeMap<String, Vec<String>>,
}

/// An offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferStatus {
    /// What is offered.
    pub application: String,
    /// `local:NAME-REV` of its charm.
    pub charm: String,
    /// Relations with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub total_connected_count: usize,
    /// Those that are joined.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_connected_count: usize,
    /// By name.
    pub endpoints: BTreeMap<String, RemoteEndpoint>,
}

/// The controller's line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerStatus {
    /// The controller's clock.
    pub timestamp: Timestamp,
    /// The controller's own version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub periapt_version: String,
    /// The engine's version, for operators who follow security fixes.
    pub engine: String,
    /// What is wrong with the controller itself, such as a store that cannot be written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_false(truth: &bool) -> bool {
    !truth
}
