//! The entries of a view.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApplicationName, Digest, EventId, InterfaceName, LeaderTerm, MachineId, ModelName, ModelUuid,
    RelationId, ResourceName, StorageId, TaskId, Timestamp, UnitMap, UnitName,
    action::{Parameters, TaskStatus},
    budget::BudgetSettings,
    charm::CharmMeta,
    command::ResolveMode,
    egress::EgressGrants,
    firewall::IngressRules,
    network::{Bindings, HostInterface, HostNetwork, Spaces, Subnet},
    offer::OfferUrl,
    pending::PendingEvent,
    ports::OpenedPorts,
    record::{CharmRef, UnitRecord},
    relation::{BagKey, Endpoint, Scope, Settings},
    settings::{ModelConfig, OptionValues, WorkloadCrash},
    state::StateKey,
    status::{AgentStatus, Life, RelationState, StatusInfo, WorkloadStatus},
};

/// The model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelView {
    /// The UUID, which never changes.
    pub uuid: ModelUuid,
    /// The model's name.
    pub name: ModelName,
    /// The model's life.
    pub life: Life,
    /// The configuration that the runner reads.
    pub config: ModelConfig,
    /// The model's limits on workloads, which `config` leaves out: agents of earlier releases know no such keys.
    #[serde(default, skip_serializing_if = "BudgetSettings::is_empty")]
    pub workload_limits: BudgetSettings,
    /// The model's spaces with their subnets.
    #[serde(default, skip_serializing_if = "Spaces::is_empty")]
    pub spaces: Spaces,
}

/// An application with units on the runner's agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationView {
    /// The application's name.
    pub name: ApplicationName,
    /// The application's life.
    pub life: Life,
    /// The charm that its units should run.
    pub charm: CharmRef,
    /// True if units in hook error upgrade as well (U-35).
    pub force_charm: bool,
    /// The settings that the operator set; defaults are in the charm.
    pub config: OptionValues,
    /// A hash of the charm, its defaults and the settings; a change makes config-changed due.
    pub config_hash: String,
    /// A number that rises with each change of the settings.
    #[serde(default)]
    pub settings_version: u64,
    /// A hash of the application-level keys.
    pub trust_hash: String,
    /// True if the operator trusts the application.
    pub trust: bool,
    /// The spaces that the application's endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// A hash of bindings and spaces, empty without them; a change makes config-changed due.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub bindings_hash: String,
    /// The leader, and its term.
    pub leader: Option<Leader>,
    /// The leader settings.
    pub leader_settings: Settings,
    /// A number that rises with each change of the leader settings.
    pub leader_settings_version: u64,
    /// Seconds between update-status hooks, in place of the model's interval; 0 turns them off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status_interval: Option<u32>,
    /// The status that the leader set; none means that it is derived from the units'.
    pub status: Option<StatusInfo<WorkloadStatus>>,
    /// True if the application is exposed: its open ports are reachable from outside.
    pub exposed: bool,
    /// The destinations outside of the model that its workloads may connect to, in place of the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_egress: Option<EgressGrants>,
    /// The treatment of hooks that were cut short beside workloads of their units.
    #[serde(default, skip_serializing_if = "WorkloadCrash::is_default")]
    pub workload_crash: WorkloadCrash,
    /// The application's own budgets of hooks; the model's hold for the rest ([`super::View::budgets`]).
    #[serde(default, skip_serializing_if = "BudgetSettings::is_empty")]
    pub budgets: BudgetSettings,
    /// The application's own limits on workloads; the model's hold for the rest.
    #[serde(default, skip_serializing_if = "BudgetSettings::is_empty")]
    pub workload_limits: BudgetSettings,
    /// The resources that have content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceView>,
}

/// The content of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceView {
    /// The content's number, one more than the previous content's.
    pub revision: u64,
    /// The digest by which agents fetch the content.
    pub digest: Digest,
    /// The size, in bytes.
    pub size: u64,
}

/// The leader of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Leader {
    /// The unit that leads.
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
    /// The charm's revision in the model.
    pub revision: u64,
    /// The charm's metadata.
    pub meta: CharmMeta,
}

/// A unit of this runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitView {
    /// The unit's name.
    pub name: UnitName,
    /// The unit's life.
    pub life: Life,
    /// The unit's machine.
    pub machine: MachineId,
    /// The principal; none unless the unit is a subordinate.
    pub principal: Option<UnitName>,
    /// The subordinates of a principal that still exist.
    pub subordinates: BTreeSet<UnitName>,
    /// The operator's answer to a failed hook.
    pub resolved: Option<ResolveMode>,
    /// The unit's record: the progress of its hooks.
    pub record: UnitRecord,
    /// The number of the last early effect that the controller applied.
    pub early_number: u64,
    /// The workload's status, as the charm set it last.
    pub workload_status: StatusInfo<WorkloadStatus>,
    /// The status of the unit's agent.
    pub agent_status: StatusInfo<AgentStatus>,
}

/// The outline of a unit of an own or a related application, for goal state, and for the leader to derive statuses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitOutline {
    /// The unit's name.
    pub name: UnitName,
    /// The unit's life.
    pub life: Life,
    /// The status that `status` shows; only for own applications and goal state.
    pub workload_status: StatusInfo<WorkloadStatus>,
    /// The agent that runs the unit; none before the unit has a machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
}

/// A relation of an application with units on the runner's agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelationView {
    /// The relation's id.
    pub id: RelationId,
    /// The only end of a peer relation, else both ends, the provider first.
    pub endpoints: Vec<Endpoint>,
    /// The scope, which decides which units see each other.
    pub scope: Scope,
    /// The relation's life.
    pub life: Life,
    /// True if an operator suspended the relation.
    pub suspended: bool,
    /// The state that `status` shows.
    #[serde(default)]
    pub state: RelationState,
    /// The time since which the state holds.
    #[serde(default)]
    pub state_since: Timestamp,
    /// The members in scope that this runner may see.
    pub members: UnitMap<Membership>,
    /// The model at the other end; none means this model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteEnd>,
    /// The subnets from which the units of this side send traffic; empty means the model's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<Subnet>,
}

/// The other end of a relation across models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RemoteEnd {
    /// The model.
    pub model: ModelUuid,
    /// The offer at that end; none means that the offer is this model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<OfferUrl>,
}

impl RelationView {
    /// Returns the end of an application; for a peer relation its only end.
    pub fn end_of(&self, application: &ApplicationName) -> Option<&Endpoint> {
        self.endpoints.iter().find(|end| end.application == *application)
    }

    /// Returns the end opposite to an application; for a peer relation its only end.
    pub fn other_end(&self, application: &ApplicationName) -> Option<&Endpoint> {
        match self.endpoints.as_slice() {
            [only] => Some(only),
            ends => ends.iter().find(|end| end.application != *application),
        }
    }

    /// Returns true for a peer relation, which joins the units of one application.
    pub fn is_peer(&self) -> bool {
        self.endpoints.len() == 1
    }

    /// Returns the relation's interface.
    pub fn interface(&self) -> Option<&InterfaceName> {
        self.endpoints.first().map(|end| &end.interface)
    }
}

/// The membership of a unit in a relation's scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Membership {
    /// The unit is in scope, and all members see it.
    #[default]
    Joined,
    /// The unit is still in scope, but the other members learn that it left.
    Departing,
}

/// A bag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BagView {
    /// The relation and the bag's owner.
    pub key: BagKey,
    /// The content.
    pub settings: Settings,
    /// A number that changes with the content; 0 if no unit has written the bag.
    pub version: u64,
    /// The principal beside which the bag's unit runs or ran, in a relation of container scope; none for
    /// other bags and for those that an earlier release wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<UnitName>,
}

/// The value that a charm stored under one key of its unit's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StateView {
    /// The unit and the charm's key.
    pub key: StateKey,
    /// The value as the charm stored it; may be empty.
    pub value: String,
}

/// The pending events of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EventsView {
    /// The unit.
    pub unit: UnitName,
    /// The number that the next event will get.
    pub next: EventId,
    /// The events that are neither emitted nor cancelled.
    pub events: BTreeMap<EventId, PendingEvent>,
}

/// A machine with units of this runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MachineView {
    /// The machine's number.
    pub id: MachineId,
    /// The agent that hosts the machine.
    pub agent: AgentName,
    /// The host's boot id.
    pub boot_id: String,
    /// The host's addresses, the preferred first.
    pub addresses: Vec<String>,
    /// The host's network interfaces; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<HostInterface>,
    /// A hash of the addresses; a change makes config-changed due.
    pub addresses_hash: String,
    /// The availability zone; may be empty.
    pub availability_zone: String,
    /// The port ranges that each unit on the machine has open, units of other applications included.
    pub ports: BTreeMap<UnitName, Vec<OpenedPorts>>,
    /// The traffic that the machine's firewall should admit (`docs/hook-model.md` 7.3).
    #[serde(default, skip_serializing_if = "IngressRules::is_empty")]
    pub ingress: IngressRules,
    /// The traffic that each unit on the machine should get from outside of the model. Units that should get none are
    /// absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unit_ingress: BTreeMap<UnitName, IngressRules>,
}

impl MachineView {
    /// Returns the host's network addresses and interfaces.
    pub fn network(&self) -> HostNetwork<'_> {
        HostNetwork { addresses: &self.addresses, interfaces: &self.interfaces }
    }

    /// Returns the address by which other hosts reach the machine.
    pub fn preferred_address(&self) -> Option<&str> {
        self.addresses.first().map(String::as_str)
    }

    /// Returns the port ranges that one unit has open.
    pub fn ports_of(&self, unit: &UnitName) -> &[OpenedPorts] {
        self.ports.get(unit).map(Vec::as_slice).unwrap_or_default()
    }
}

/// A task, which has not ended, of one of the runner's units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskView {
    /// The task's number; a unit runs its tasks in this order.
    pub id: TaskId,
    /// The unit that runs the task.
    pub unit: UnitName,
    /// The action.
    pub action: String,
    /// The parameters, with defaults filled in.
    pub parameters: Parameters,
    /// The group of actions on the machine that run one at a time; none if the action runs beside all others.
    pub group: Option<String>,
    /// Pending, running or aborting.
    pub status: TaskStatus,
}

/// A storage instance that is, or will be, on this runner's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageView {
    /// The instance's id.
    pub id: StorageId,
    /// The instance's life. Unless it is alive, the agent deletes the files once no unit has the storage.
    pub life: Life,
    /// The size limit, in mebibytes.
    pub size: u64,
    /// True if the agent has made the storage.
    pub provisioned: bool,
    /// The unit that the storage is attached to.
    pub attachment: Option<StorageAttachment>,
}

/// The attachment of storage to a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageAttachment {
    /// The unit.
    pub unit: UnitName,
    /// The attachment's life; once it is dying, the unit detaches the storage.
    pub life: Life,
    /// The path at which the unit's hooks find the storage.
    pub location: String,
    /// True if hooks may only read it.
    pub read_only: bool,
}
