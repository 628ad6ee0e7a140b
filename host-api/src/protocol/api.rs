//! The types that only API, client and command line share: queries, and the details of single entities.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

mod model;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApplicationName, ContainerName, Digest, EndpointName, EventId, InterfaceName, MachineId,
    RelationId, ResourceName, Revision, SpaceName, StoreId, Timestamp, UnitName,
    budget::BudgetKey,
    charm::{OptionType, ResourceMeta},
    command::{Exposure, ResolveMode},
    constraints::Constraints,
    container::{ContainerDetails, TakenPort},
    egress::EgressGrants,
    journal::JournalRecord,
    network::{Bindings, Subnet},
    pending::PendingEvent,
    ports::OpenedPorts,
    record::UnitRecord,
    relation::{Role, Settings},
    resource::ResourceRevision,
    secret::{RotatePolicy, SecretData, SecretId, SecretOwner, SecretRevision},
    settings::{OptionValue, WorkloadCrash},
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    storage::StorageDirectives,
};

pub use model::{
    ModelConfigDetails, ModelDefault, ModelDefaults, ModelSelector, ModelSettingDetails, ModelSettingSource,
};

/// The largest charm archive that the controller accepts, in bytes. A Python charm with its interpreter takes about
/// 40 MiB.
pub const MAX_ARCHIVE_BYTES: u64 = 128 * 1024 * 1024;

pub use crate::timing::MAX_ADDRESSES;

/// The longest line of an NDJSON stream that a reader accepts, in bytes. Watches cut frames to [`FRAME_LINE_BYTES`];
/// a status is one line.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// The bytes of a frame that go into one line of a watch. A view has no bound, as units, charm state and tasks add
/// up. A single entry may be longer, and stays far below [`MAX_LINE_BYTES`].
pub const FRAME_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The largest body of a request for commands, in bytes. A commit takes at most 1 MiB; its journal, its early effects
/// and JSON's own characters add to that.
pub const MAX_COMMANDS_BYTES: usize = 8 * 1024 * 1024;

/// The largest number of commands in one bulk call.
pub const MAX_COMMANDS: usize = 1_000;

/// The largest number of concurrent streams of one connection. A host's agent keeps one stream open for each model
/// with units on it, and up to four calls for each busy model: enough for 1,000 models of which 250 are busy. Further
/// calls wait for a free stream. A connection's flow-control window is this many times a stream's, so that a stream
/// without a reader blocks no other.
pub const MAX_STREAMS: u32 = 1_024;

/// The position from which a watch resumes: the last frame that the watcher applied. A watcher whose position the
/// controller cannot resume from gets a full replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WatchPosition {
    /// The store that the revision belongs to.
    pub store: StoreId,
    /// The revision up to which the watcher's view is complete.
    pub revision: Revision,
}

/// Formats the position as `STORE/REVISION`.
impl fmt::Display for WatchPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.store, self.revision)
    }
}

/// The error for a text that is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid position: it must be STORE/REVISION")]
pub struct WatchPositionError;

impl FromStr for WatchPosition {
    type Err = WatchPositionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (store, revision) = text.split_once('/').ok_or(WatchPositionError)?;
        let store = store.parse().map_err(|_| WatchPositionError)?;
        let revision = revision.parse().map_err(|_| WatchPositionError)?;
        Ok(Self { store, revision })
    }
}

/// The answer to an agent's registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Registered {
    /// The store that the controller's revisions belong to.
    pub store: StoreId,
    /// The revision at which the registration can be read.
    pub revision: Revision,
}

/// One journal record with its unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JournalEntry {
    /// The unit.
    pub unit: UnitName,
    /// The revision of the commit that brought the record.
    #[serde(default)]
    pub revision: Revision,
    /// The reason why the hook cannot be replayed from its record; none if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_replayable: Option<String>,
    /// The record of the hook.
    pub record: JournalRecord,
}

impl JournalEntry {
    /// Creates the entry of a unit's record.
    pub fn new(unit: UnitName, revision: Revision, record: JournalRecord) -> Self {
        Self { unit, revision, not_replayable: record.why_not_replayable(), record }
    }
}

/// A query for hooks of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct JournalQuery {
    /// The unit; none means the newest few hooks of each unit.
    pub unit: Option<UnitName>,
    /// The `seq` from which the runs started; none means all runs.
    pub seq: Option<u64>,
    /// True to include host calls; requires a unit.
    pub calls: bool,
    /// True to include random seeds, and the arguments and answers of calls about secrets. Requires an administrator
    /// of the model.
    pub secrets: bool,
    /// The `next` of the previous page.
    pub after: Option<String>,
}

/// A page of the journal: units in order of their names, the hooks of each from the newest to the oldest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Journal {
    /// The hooks, with their units.
    pub entries: Vec<JournalEntry>,
    /// The start of the next page; none on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The spaces of a model with their subnets. `alpha` has the hosts' subnets that are in no other space.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SpaceList {
    /// The subnets, by space.
    pub spaces: BTreeMap<SpaceName, BTreeSet<Subnet>>,
}

/// A unit, as `show-unit` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitDetails {
    /// The unit's name.
    pub name: UnitName,
    /// The unit's application.
    pub application: ApplicationName,
    /// The unit's life.
    pub life: Life,
    /// `local:NAME-REV` of the charm that the unit runs; of its application's charm until the unit runs one.
    pub charm: String,
    /// The digest of that charm's archive.
    pub charm_digest: Digest,
    /// True if the unit leads its application.
    pub leader: bool,
    /// The unit's machine; none until the unit is placed.
    pub machine: Option<MachineId>,
    /// The agent that hosts the machine.
    pub agent: Option<AgentName>,
    /// The machine's preferred address.
    pub address: Option<String>,
    /// The principal; none unless the unit is a subordinate.
    pub principal: Option<UnitName>,
    /// The subordinates of a principal.
    pub subordinates: Vec<UnitName>,
    /// The port ranges that the unit has open.
    pub opened_ports: Vec<OpenedPorts>,
    /// The workload's version, as the charm sets it.
    pub workload_version: String,
    /// The workload's status, as the charm sets it.
    pub workload_status: StatusInfo<WorkloadStatus>,
    /// The status of the unit's agent.
    pub agent_status: StatusInfo<AgentStatus>,
    /// The operator's answer to a failed hook, until it is used.
    pub resolved: Option<ResolveMode>,
    /// The unit's record: the progress of its hooks.
    pub record: UnitRecord,
    /// The pending events that the unit's charm asked for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pending_events: BTreeMap<EventId, PendingEvent>,
    /// The unit's relations.
    pub relations: Vec<UnitRelation>,
    /// The newest hooks, the oldest of them first.
    pub journal: Vec<JournalRecord>,
    /// The containers that the unit's charm declares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub containers: BTreeMap<ContainerName, ContainerDetails>,
    /// The open ports of the unit on which its agent cannot listen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken_ports: Vec<TakenPort>,
}

/// One relation, as one unit sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitRelation {
    /// The relation's id.
    pub relation_id: RelationId,
    /// The unit's own end.
    pub endpoint: EndpointName,
    /// The other end; the same as `endpoint` in a peer relation.
    pub related_endpoint: EndpointName,
    /// The application at the other end.
    pub related_application: ApplicationName,
    /// The relation's interface.
    pub interface: InterfaceName,
    /// The bag of the other end's application.
    pub application_data: Settings,
    /// The unit's own bag.
    pub local_unit: UnitBag,
    /// The bags of the units at the other end.
    pub related_units: BTreeMap<UnitName, UnitBag>,
    /// True if the other end is in another model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cross_model: bool,
}

/// A unit's bag in a relation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitBag {
    /// True if the unit is in the relation's scope.
    pub in_scope: bool,
    /// The bag's content.
    pub data: Settings,
}

/// An application, as `show-application` and `config` show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationDetails {
    /// The application's name.
    pub name: ApplicationName,
    /// The application's life.
    pub life: Life,
    /// The charm: `local:NAME-REV`.
    pub charm: String,
    /// The charm's own name.
    pub charm_name: String,
    /// The charm's revision in this model.
    pub charm_revision: u64,
    /// The digest of the charm's archive.
    pub charm_digest: Digest,
    /// The charms that the application had before and that the model keeps, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_charms: Vec<FormerCharm>,
    /// True if the application is a subordinate, whose units run beside those of principals.
    pub subordinate: bool,
    /// True if the application is exposed: its open ports are reachable from outside.
    pub exposed: bool,
    /// True if the operator trusts the application.
    pub trust: bool,
    /// Seconds between update-status hooks, in place of the model's interval; 0 turns them off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status_hook_interval: Option<u32>,
    /// The agents for new units, and the memory of hooks.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// The storage of units, in place of the charm's defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// The spaces that the application's endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// The sources that may reach the ports of each endpoint; the empty name stands for all endpoints. Empty means
    /// that all sources may reach all ports.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exposures: BTreeMap<String, Exposure>,
    /// The leader.
    pub leader: Option<UnitName>,
    /// The application's units.
    pub units: Vec<UnitName>,
    /// The charm's endpoints.
    pub endpoints: BTreeMap<EndpointName, EndpointDetails>,
    /// The charm's options with their values.
    pub settings: BTreeMap<String, SettingDetails>,
    /// The destinations outside of the model that its workloads may connect to, in place of the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_egress: Option<EgressGrants>,
    /// The treatment of hooks that were cut short beside workloads of their units.
    #[serde(default)]
    pub workload_crash: WorkloadCrash,
    /// The budgets of the application's hooks.
    #[serde(default)]
    pub budgets: BTreeMap<BudgetKey, BudgetDetails>,
}

/// A charm that an application had before, and that a refresh can go back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FormerCharm {
    /// The charm's own name.
    pub name: String,
    /// The charm's revision in this model.
    pub revision: u64,
    /// The digest of the charm's archive.
    pub digest: Digest,
    /// The resources that it declares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceMeta>,
}

/// A budget of hooks with its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BudgetDetails {
    /// The budget, in bytes, seconds or calls.
    pub value: u64,
    /// The source of the value.
    pub source: BudgetSource,
}

/// The source of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetSource {
    /// The application's own setting.
    Application,
    /// The model's configuration.
    Model,
    /// The controller's defaults of model configuration.
    Controller,
    /// The built-in default.
    Default,
}

/// An endpoint with its relations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EndpointDetails {
    /// The endpoint's role.
    pub role: Role,
    /// The endpoint's interface.
    pub interface: InterfaceName,
    /// The endpoint's relations.
    pub relations: Vec<RelationId>,
}

/// The source of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingSource {
    /// The charm's default.
    Default,
    /// The operator.
    User,
    /// No source: the setting has no value and no default.
    Unset,
}

/// An option of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SettingDetails {
    /// The option's type.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// The option's purpose.
    pub description: String,
    /// The charm's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<OptionValue>,
    /// The value that hooks read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<OptionValue>,
    /// The source of the value.
    pub source: SettingSource,
}

/// A resource of an application, as `resources` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceDetails {
    /// The resource's name.
    pub name: ResourceName,
    /// The resource's declaration in the charm.
    pub meta: ResourceMeta,
    /// The attached content; none until an operator attaches some.
    pub attached: Option<ResourceRevision>,
    /// The contents before it that the controller keeps, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<ResourceRevision>,
    /// The application's units, each with the revision that its charm last saw; none if it saw no revision.
    pub units: BTreeMap<UnitName, Option<ResourceRevision>>,
}

/// A secret, as `secrets` and `show-secret` show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretDetails {
    /// The secret's id.
    pub id: SecretId,
    /// The secret's owner.
    pub owner: SecretOwner,
    /// The latest revision, or the queried one.
    pub revision: SecretRevision,
    /// The name, if the model's users own the secret, else the owner's label.
    pub label: Option<String>,
    /// The description, for people.
    pub description: String,
    /// The rotation policy.
    pub rotate: RotatePolicy,
    /// The time of the next rotation.
    pub next_rotate: Option<Timestamp>,
    /// The time when that revision expires.
    pub expire: Option<Timestamp>,
    /// True if revisions that no unit reads are pruned.
    pub auto_prune: bool,
    /// The time when the secret was made.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
    /// The revisions that exist.
    pub revisions: BTreeMap<SecretRevision, SecretRevisionDetails>,
    /// The grants of access.
    pub access: Vec<SecretAccess>,
    /// The content of that revision, if the query asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<SecretData>,
}

/// One revision of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretRevisionDetails {
    /// The time when the revision was made.
    pub created_at: Timestamp,
    /// The time of the revision's last change.
    pub updated_at: Timestamp,
    /// The time when the revision expires.
    pub expire: Option<Timestamp>,
}

/// A grant of access to a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretAccess {
    /// The reader: `application-NAME` or `unit-NAME-NUMBER`.
    pub target: String,
    /// The scope of the grant: `relation-KEY` or `model-UUID`.
    pub scope: String,
    /// The permission: `view`.
    pub role: String,
}

/// A query for secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretQuery {
    /// True to include content. Requires an administrator of the model.
    pub reveal: bool,
    /// The revision whose content to include; none means the latest.
    pub revision: Option<SecretRevision>,
}
