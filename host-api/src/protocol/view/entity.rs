//! The entries of a view.

use std::collections::{BTreeMap, BTreeSet};

use imbl::OrdMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApplicationName, Digest, EventId, InterfaceName, LeaderTerm, MachineId, ModelName, ModelUuid,
    RelationId, ResourceName, StorageId, TaskId, Timestamp, UnitName,
    action::{Parameters, TaskStatus},
    budget::BudgetSettings,
    charm::CharmMeta,
    command::ResolveMode,
    firewall::IngressRules,
    network::{Bindings, HostInterface, HostNetwork, Spaces, Subnet},
    offer::OfferUrl,
    pending::PendingEvent,
    ports::OpenedPorts,
    record::{CharmRef, UnitRecord},
    relation::{BagKey, Endpoint, Scope, Settings},
    settings::{ModelConfig, OptionValues},
    state::StateKey,
    status::{AgentStatus, Life, RelationState, StatusInfo, WorkloadStatus},
};

/// The model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelView {
    /// For ever.
    pub uuid: ModelUuid,
    /// As people call it.
    pub name: ModelName,
    /// Life.
    pub life: Life,
    /// What the engine reads.
    pub config: ModelConfig,
    /// Which subnets are in which space.
    #[serde(default, skip_serializing_if = "Spaces::is_empty")]
    pub spaces: Spaces,
}

/// An application that has units here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationView {
    /// Name.
    pub name: ApplicationName,
    /// Life.
    pub life: Life,
    /// The charm that its units should run.
    pub charm: CharmRef,
    /// Whether a failed hook does not hold the upgrade up (U-35).
    pub force_charm: bool,
    /// What was set; defaults stand in the charm.
    pub config: OptionValues,
    /// Over settings, their defaults and the charm: differs when config-changed is due.
    pub config_hash: String,
    /// Rises with each change of the settings.
    #[serde(default)]
    pub settings_version: u64,
    /// Over application-level keys.
    pub trust_hash: String,
    /// Whether the operator trusts it.
    pub trust: bool,
    /// The spaces that its endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// Over bindings and spaces, empty where there are none: differs when config-changed is due.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bindings_hash: String,
    /// Who leads, and for which term.
    pub leader: Option<Leader>,
    /// Leader settings.
    pub leader_settings: Settings,
    /// Rises with each change of the leader settings.
    pub leader_settings_version: u64,
    /// Seconds between update-status hooks, in place of the model's; 0 is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status_interval: Option<u32>,
    /// What the leader said; none: derived from the units.
    pub status: Option<StatusInfo<WorkloadStatus>>,
    /// Whether its ports are reachable from outside.
    pub exposed: bool,
    /// What its hooks may use; for the rest the model's configuration says it ([`super::View::budgets`]).
    #[serde(default, skip_serializing_if = "BudgetSettings::is_empty")]
    pub budgets: BudgetSettings,
    /// The resources that have content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceView>,
}

/// The content of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceView {
    /// Rises by one with each new content.
    pub revision: u64,
    /// By this it is fetched.
    pub digest: Digest,
    /// In bytes.
    pub size: u64,
}

/// Who leads an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Leader {
    /// The unit.
    pub unit: UnitName,
    /// The fencing token.
    pub term: LeaderTerm,
}

/// A charm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmView {
    /// The archive's digest.
    pub digest: Digest,
    /// The component's digest, inside the archive.
    pub component: Digest,
    /// Its revision in the model.
    pub revision: u64,
    /// What it declares.
    pub meta: CharmMeta,
}

/// A unit that this runner runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitView {
    /// Name.
    pub name: UnitName,
    /// Life.
    pub life: Life,
    /// Its machine.
    pub machine: MachineId,
    /// The principal, of a subordinate.
    pub principal: Option<UnitName>,
    /// Subordinates of a principal that are still there.
    pub subordinates: BTreeSet<UnitName>,
    /// The operator's answer to a failed hook.
    pub resolved: Option<ResolveMode>,
    /// What it has done.
    pub record: UnitRecord,
    /// The number of the last early item that was taken.
    pub early_number: u64,
    /// What the charm said last.
    pub workload_status: StatusInfo<WorkloadStatus>,
    /// What the agent said last.
    pub agent_status: StatusInfo<AgentStatus>,
}

/// A unit of an own or a related application, in outline: goal state, and statuses for the leader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitOutline {
    /// Name.
    pub name: UnitName,
    /// Life.
    pub life: Life,
    /// What is shown of it; only of own applications and goal state.
    pub workload_status: StatusInfo<WorkloadStatus>,
}

/// A relation of an application that has units here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelationView {
    /// Number.
    pub id: RelationId,
    /// One end for peers, else two, the provider first.
    pub endpoints: Vec<Endpoint>,
    /// Who sees whom.
    pub scope: Scope,
    /// Life.
    pub life: Life,
    /// Suspended by an operator.
    pub suspended: bool,
    /// How it is shown.
    #[serde(default)]
    pub state: RelationState,
    /// Since when.
    #[serde(default)]
    pub state_since: Timestamp,
    // Persistent: one that comes or goes costs no copy of all others.
    /// The units in scope that this runner may see.
    #[schemars(with = "BTreeMap<UnitName, Membership>")]
    pub members: OrdMap<UnitName, Membership>,
    /// The model at the other end; none: this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteEnd>,
    /// Where the traffic of this side's units comes from, if not from where the model says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<Subnet>,
}

/// The other end of a relation that stands in another model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RemoteEnd {
    /// The model.
    pub model: ModelUuid,
    /// The offer at that end; none: the offer is this model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<OfferUrl>,
}

impl RelationView {
    /// The end of an application; a peer relation's only end.
    pub fn end_of(&self, application: &ApplicationName) -> Option<&Endpoint> {
        self.endpoints.iter().find(|end| end.application == *application)
    }

    /// The end that an application looks at: its own, in a peer relation.
    pub fn other_end(&self, application: &ApplicationName) -> Option<&Endpoint> {
        match self.endpoints.as_slice() {
            [only] => Some(only),
            ends => ends.iter().find(|end| end.application != *application),
        }
    }

    /// Whether it joins the units of one application.
    pub fn is_peer(&self) -> bool {
        self.endpoints.len() == 1
    }

    /// The interface.
    pub fn interface(&self) -> Option<&InterfaceName> {
        self.endpoints.first().map(|end| &end.interface)
    }
}

/// A unit's place in a relation's scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Membership {
    /// In scope, for all to see.
    #[default]
    Joined,
    /// In scope still, but the others are told that it left.
    Departing,
}

/// A bag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BagView {
    /// Whose, in which relation.
    pub key: BagKey,
    /// Content.
    pub settings: Settings,
    /// Differs when the content does; 0: never written.
    pub version: u64,
    /// In a relation of container scope, the principal whose container the bag's unit lives or lived in;
    /// none for any other bag, and for one that an earlier release wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<UnitName>,
}

/// What a charm stored under one key for its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StateView {
    /// Whose, and the charm's name for it.
    pub key: StateKey,
    /// As it was stored; may be empty.
    pub value: String,
}

/// Events that a unit waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EventsView {
    /// The unit.
    pub unit: UnitName,
    /// The number that the next one gets.
    pub next: EventId,
    /// Those that were neither told nor cancelled.
    pub events: BTreeMap<EventId, PendingEvent>,
}

/// A machine that hosts units of this runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineView {
    /// Number.
    pub id: MachineId,
    /// The agent that hosts it.
    pub agent: AgentName,
    /// The host's boot.
    pub boot_id: String,
    /// Addresses, the preferred first.
    pub addresses: Vec<String>,
    /// Its host's interfaces; none: not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<HostInterface>,
    /// Over the addresses: differs when config-changed is due.
    pub addresses_hash: String,
    /// May be empty.
    pub availability_zone: String,
    /// What each unit on the machine has open, those of other applications included.
    pub ports: BTreeMap<UnitName, Vec<OpenedPorts>>,
    /// What its firewall is to let in (`hook-model.md` 7.3).
    #[serde(default, skip_serializing_if = "IngressRules::is_empty")]
    pub ingress: IngressRules,
}

impl MachineView {
    /// What its host says of its networks.
    pub fn network(&self) -> HostNetwork<'_> {
        HostNetwork { addresses: &self.addresses, interfaces: &self.interfaces }
    }

    /// The address that others reach it by.
    pub fn preferred_address(&self) -> Option<&str> {
        self.addresses.first().map(String::as_str)
    }

    /// What one unit has open.
    pub fn ports_of(&self, unit: &UnitName) -> &[OpenedPorts] {
        self.ports.get(unit).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A task of an own unit that has not ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskView {
    /// Its number; a unit runs its tasks in this order.
    pub id: TaskId,
    /// Where it runs.
    pub unit: UnitName,
    /// The action.
    pub action: String,
    /// Its parameters, defaults inserted.
    pub parameters: Parameters,
    /// The actions that it must not run beside, on its machine; none: it runs beside all.
    pub group: Option<String>,
    /// Pending, running or aborting.
    pub status: TaskStatus,
}

/// An instance of storage that lies, or is to lie, on this runner's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageView {
    /// Which.
    pub id: StorageId,
    /// Not alive: its files are to be deleted once no unit has it.
    pub life: Life,
    /// Its bound, in mebibytes.
    pub size: u64,
    /// Whether it is there.
    pub provisioned: bool,
    /// The unit that has it.
    pub attachment: Option<StorageAttachment>,
}

/// A unit's hold on storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageAttachment {
    /// The unit.
    pub unit: UnitName,
    /// Dying: the unit is to let it go.
    pub life: Life,
    /// Where the unit's hooks find it.
    pub location: String,
    /// Whether they may only read it.
    pub read_only: bool,
}
