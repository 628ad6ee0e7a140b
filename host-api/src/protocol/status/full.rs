//! The answer of `status`, with the field names that Juju's clients parse.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{StatusText, storage::CombinedStorage};
use crate::{
    Revision, Timestamp, command::MemberRole, firewall::IngressRules, offer::RemoteEndpoint,
    program::RunningProgram,
};

/// The document of `status --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FullStatus {
    /// The model.
    pub model: ModelStatus,
    /// The machines, by number.
    pub machines: BTreeMap<String, MachineStatus>,
    /// The applications, by name.
    pub applications: BTreeMap<String, ApplicationStatus>,
    /// The consumed offers of other models, by their names in this one.
    #[serde(rename = "application-endpoints", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub remote_applications: BTreeMap<String, RemoteApplicationStatus>,
    /// This model's offers to other models, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offers: BTreeMap<String, OfferStatus>,
    /// The relations in order of their ids, for `--relations`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationStatus>,
    /// The model's storage; an empty object if there is none, as in Juju.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<CombinedStorage>,
    /// The controller.
    pub controller: ControllerStatus,
}

/// The model's part of a status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelStatus {
    /// The model's name.
    pub name: String,
    /// Always `iaas`: units live on machines.
    #[serde(rename = "type")]
    pub kind: String,
    /// The controller's name.
    pub controller: String,
    /// Always `periapt`.
    pub cloud: String,
    /// Always `default`, the only region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The release of Juju whose behaviour Periapt has.
    pub version: String,
    /// The model's life, as a status.
    pub model_status: StatusText,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineStatus {
    /// The agent's status: `pending`, `started`, `down`, ...
    pub juju_status: StatusText,
    /// The name of the agent's host.
    pub hostname: String,
    /// The preferred address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub dns_name: String,
    /// All addresses of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_addresses: Vec<String>,
    /// The agent that hosts the machine.
    pub instance_id: String,
    /// The status of the instance.
    pub machine_status: StatusText,
    /// Always `idle`: Juju shows the profiles of containers here, and Periapt has no containers.
    #[serde(default)]
    pub modification_status: StatusText,
    /// The base that charms see.
    pub base: Base,
    /// The host's interfaces, by name; empty if unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub network_interfaces: BTreeMap<String, NetworkInterface>,
    /// The machine's life, unless alive.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// The host's cores, zone and other hardware.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hardware: String,
    /// The port ranges that the machine's firewall should admit, and their sources.
    #[serde(default, skip_serializing_if = "IngressRules::is_empty")]
    pub ingress_rules: IngressRules,
    /// The program that the machine's agent runs, and the last one that it did not take or went back from; none of agents
    /// that keep theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<RunningProgram>,
}

/// An interface of a machine's host that other hosts can reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NetworkInterface {
    /// The interface's addresses.
    pub ip_addresses: Vec<String>,
    /// The MAC address as six bytes in hex; may be empty.
    pub mac_address: String,
    /// The space of the first address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub space: String,
    /// True if the interface is up. Agents report only such interfaces.
    pub is_up: bool,
}

/// The base of a charm: the sandbox.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Base {
    /// The name: `wasi`.
    pub name: String,
    /// The version: `0.2`.
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
    /// The charm: `local:NAME-REV`.
    pub charm: String,
    /// The charm's base.
    pub base: Base,
    /// The origin of the charm: `local`.
    pub charm_origin: String,
    /// The charm's own name.
    pub charm_name: String,
    /// The charm's revision in this model.
    pub charm_rev: u64,
    /// The number of the application's own units. Juju sets it only on Kubernetes, but scripts wait for it
    /// everywhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub scale: usize,
    /// True if the application is exposed: its open ports are reachable from outside.
    pub exposed: bool,
    /// `dying` if the application is dying.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// The application's status.
    pub application_status: StatusText,
    /// The related applications, by endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relations: BTreeMap<String, Vec<RelatedApplication>>,
    /// The principals of a subordinate application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subordinate_to: Vec<String>,
    /// The units, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, UnitStatus>,
    /// The workload's version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The space of each endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoint_bindings: BTreeMap<String, String>,
    /// The digest of the charm's archive.
    pub charm_digest: String,
    /// The conditions that the removal waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// The application at the other end of an endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelatedApplication {
    /// The other application.
    pub related_application: String,
    /// The interface.
    pub interface: String,
    /// The scope: `global` or `container`.
    pub scope: String,
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitStatus {
    /// The workload's status, as the charm sets it.
    pub workload_status: StatusText,
    /// The status of the unit's agent.
    pub juju_status: StatusText,
    /// True if the unit leads its application; left out if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub leader: bool,
    /// The unit's machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The open port ranges: `80/tcp`, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_ports: Vec<String>,
    /// The machine's address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// The machine's address, under Juju's other name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub public_address: String,
    /// The unit's subordinates, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subordinates: BTreeMap<String, UnitStatus>,
    /// `dying` if the unit is dying.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// The conditions that the removal waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// `local:NAME-REV` of the charm that the unit runs, while the application has another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub upgrading_from: String,
    /// The containers, services and checks of the unit that are down, and its ports that are taken, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workload_problems: Vec<String>,
}

/// A relation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelationStatus {
    /// The relation's id.
    pub id: u32,
    /// `APPLICATION:ENDPOINT` of the provider, or of a peer relation's only end.
    pub provider: String,
    /// `APPLICATION:ENDPOINT` of the requirer.
    pub requirer: String,
    /// The relation's interface.
    pub interface: String,
    /// The kind: `regular`, `subordinate` or `peer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The state: `joining`, `joined`, ...
    pub status: String,
    /// The reason of a suspension.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The conditions that the removal waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
}

/// A consumed offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RemoteApplicationStatus {
    /// The offer's URL: `USER/MODEL.OFFER`.
    pub url: String,
    /// The offer's endpoints, by name.
    pub endpoints: BTreeMap<String, RemoteEndpoint>,
    /// `dying` if the consumed offer is dying.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub life: String,
    /// The offered application's status; `terminated` once the offer is removed.
    pub application_status: StatusText,
    /// The related applications, by endpoint.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub relations: BTreeMap<String, Vec<String>>,
}

/// An offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OfferStatus {
    /// The offered application.
    pub application: String,
    /// The application's charm: `local:NAME-REV`.
    pub charm: String,
    /// The number of relations with the offer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub total_connected_count: usize,
    /// The number of those relations that are joined.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub active_connected_count: usize,
    /// The offered endpoints, by name.
    pub endpoints: BTreeMap<String, RemoteEndpoint>,
}

/// The controller's part of a status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerStatus {
    /// The time of the controller's clock.
    pub timestamp: Timestamp,
    /// The controller's own version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub periapt_version: String,
    /// The engine's version, for operators who follow security fixes.
    pub engine: String,
    /// The controller's faults, such as a store that it cannot write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The controllers that share the log, by name; none for a controller that is alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub members: BTreeMap<String, MemberStatus>,
    /// The revision of the state that a line of a stream shows. Clients take it out of the lines, and a status that is read
    /// once has none: its answer has the header `Periapt-Seen`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
}

/// One of several controllers in a status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemberStatus {
    /// Its role.
    pub role: MemberRole,
    /// The last revision that it is known to have applied.
    pub revision: Revision,
    /// The number of revisions that it has not applied yet, as far as is known.
    pub behind: u64,
    /// True if it is not up to date with the log, and shows no state until it is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub stale: bool,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_false(truth: &bool) -> bool {
    !truth
}
