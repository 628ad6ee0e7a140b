//! What the HTTP API shows of single things, and how it is asked: the types that only API, client and command
//! line share.

use std::collections::{BTreeMap, BTreeSet};

mod model;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApplicationName, Digest, EndpointName, EventId, InterfaceName, MachineId, RelationId,
    ResourceName, Revision, SpaceName, StoreId, Timestamp, UnitName,
    budget::BudgetKey,
    charm::{OptionType, ResourceMeta},
    command::{Exposure, ResolveMode},
    constraints::Constraints,
    journal::JournalRecord,
    network::{Bindings, Subnet},
    pending::PendingEvent,
    ports::OpenedPorts,
    record::UnitRecord,
    relation::{Role, Settings},
    resource::ResourceRevision,
    secret::{RotatePolicy, SecretData, SecretId, SecretOwner, SecretRevision},
    settings::OptionValue,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    storage::StorageDirectives,
};

pub use model::{
    ModelConfigDetails, ModelDefault, ModelDefaults, ModelSelector, ModelSettingDetails, ModelSettingSource,
};

/// The largest charm archive that is taken, in bytes: a Python charm with its interpreter is about 40 MiB.
pub const MAX_ARCHIVE_BYTES: u64 = 128 * 1024 * 1024;

/// The longest line of an NDJSON stream that is read. Views have lines of their own ([`FRAME_LINE_BYTES`]); a status is
/// one line.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// How much of a frame goes into one line of a watch: what a view takes has no bound of its own, as units, what charms
/// stored and tasks add up. One entry alone may be longer; none comes near to [`MAX_LINE_BYTES`].
pub const FRAME_LINE_BYTES: usize = 4 * 1024 * 1024;

/// The largest body of one request for commands: a commit is at most 1 MiB, and its journal, its early effects
/// and the JSON around them come on top.
pub const MAX_COMMANDS_BYTES: usize = 8 * 1024 * 1024;

/// The most commands in one bulk call.
pub const MAX_COMMANDS: usize = 1_000;

/// The most streams that one connection carries at a time: a host's agent has one open for each model that has
/// units on it, and up to four calls for each model that is at work, so that it serves some 1,000 models of which 250
/// may be at work at once; calls beyond wait for others to be answered. Flow-control windows of connections are this many times those of streams, so that a stream that
/// nobody reads holds up no other.
pub const MAX_STREAMS: u32 = 1_024;

/// Where a watch goes on: the last frame that was applied. One that the controller cannot continue from gets a
/// full replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct WatchPosition {
    /// The store whose revision it is.
    pub store: StoreId,
    /// Up to where the watcher's view is complete.
    pub revision: Revision,
}

/// The answer to an agent's registration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Registered {
    /// The store that revisions belong to.
    pub store: StoreId,
    /// The revision at which the registration can be read.
    pub revision: Revision,
}

/// One journal record with the unit that it is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct JournalEntry {
    /// The unit.
    pub unit: UnitName,
    /// The commit that it came with.
    #[serde(default)]
    pub revision: Revision,
    /// What it ran.
    pub record: JournalRecord,
}

/// Which hooks of the journal are wanted, and how much of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct JournalQuery {
    /// Of this unit; none: the newest few of each unit.
    pub unit: Option<UnitName>,
    /// Only the runs that started from this `seq`.
    pub seq: Option<u64>,
    /// With their host calls; a unit must be named.
    pub calls: bool,
    /// With seeds and with what calls about secrets were given and answered; for administrators of the model.
    pub secrets: bool,
    /// Where the page before ended, as it said.
    pub after: Option<String>,
}

/// A page of the journal: units by name, of each the newest hook first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Journal {
    /// The hooks.
    pub entries: Vec<JournalEntry>,
    /// From where the next page goes on; none: this is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// The spaces of a model with their subnets. `alpha` has those of the hosts that are in no other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SpaceList {
    /// By name.
    pub spaces: BTreeMap<SpaceName, BTreeSet<Subnet>>,
}

/// A unit, as `show-unit` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitDetails {
    /// Name.
    pub name: UnitName,
    /// Its application.
    pub application: ApplicationName,
    /// Life.
    pub life: Life,
    /// `local:NAME-REV` of the charm that it runs; of its application's, before it has one.
    pub charm: String,
    /// That charm's archive.
    pub charm_digest: Digest,
    /// Whether it leads its application.
    pub leader: bool,
    /// Its machine, once it has one.
    pub machine: Option<MachineId>,
    /// The agent that hosts the machine.
    pub agent: Option<AgentName>,
    /// Its machine's preferred address.
    pub address: Option<String>,
    /// The principal, of a subordinate.
    pub principal: Option<UnitName>,
    /// Subordinates, of a principal.
    pub subordinates: Vec<UnitName>,
    /// What it has open.
    pub opened_ports: Vec<OpenedPorts>,
    /// What the charm says that the workload's version is.
    pub workload_version: String,
    /// What the charm says.
    pub workload_status: StatusInfo<WorkloadStatus>,
    /// What the agent does.
    pub agent_status: StatusInfo<AgentStatus>,
    /// The operator's answer to a failed hook, until it is used.
    pub resolved: Option<ResolveMode>,
    /// What it has done.
    pub record: UnitRecord,
    /// Events that its charm asked to be told later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pending_events: BTreeMap<EventId, PendingEvent>,
    /// Its relations.
    pub relations: Vec<UnitRelation>,
    /// Its newest hooks, the oldest first.
    pub journal: Vec<JournalRecord>,
}

/// One relation, seen from one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitRelation {
    /// Number.
    pub relation_id: RelationId,
    /// The unit's own end.
    pub endpoint: EndpointName,
    /// The other end; of peers the same.
    pub related_endpoint: EndpointName,
    /// The application at the other end.
    pub related_application: ApplicationName,
    /// The interface.
    pub interface: InterfaceName,
    /// The bag of the other end's application.
    pub application_data: Settings,
    /// The unit's own part.
    pub local_unit: UnitBag,
    /// The units at the other end.
    pub related_units: BTreeMap<UnitName, UnitBag>,
    /// Whether the other end stands in another model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cross_model: bool,
}

/// A unit's bag in a relation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitBag {
    /// Whether it is in the relation's scope.
    pub in_scope: bool,
    /// Content.
    pub data: Settings,
}

/// An application, as `show-application` and `config` show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationDetails {
    /// Name.
    pub name: ApplicationName,
    /// Life.
    pub life: Life,
    /// `local:NAME-REV`
    pub charm: String,
    /// The charm's own name.
    pub charm_name: String,
    /// Its revision in this model.
    pub charm_revision: u64,
    /// Its archive.
    pub charm_digest: Digest,
    /// Whether its units live beside a principal's.
    pub subordinate: bool,
    /// Whether its ports are reachable from outside.
    pub exposed: bool,
    /// Whether the operator trusts it.
    pub trust: bool,
    /// Seconds between its units' update-status hooks, in place of the model's; 0 is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status_hook_interval: Option<u32>,
    /// On which agents its new units are placed, and the memory of its hooks.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// What storage its units get, where it is other than the charm declares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// The spaces that its endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// Whom the ports of which endpoints are for, the empty name being all endpoints; none: all ports are for
    /// everybody.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exposures: BTreeMap<String, Exposure>,
    /// Who leads it.
    pub leader: Option<UnitName>,
    /// Its units.
    pub units: Vec<UnitName>,
    /// Its charm's endpoints.
    pub endpoints: BTreeMap<EndpointName, EndpointDetails>,
    /// Its charm's options with their values.
    pub settings: BTreeMap<String, SettingDetails>,
    /// What its hooks may use.
    #[serde(default)]
    pub budgets: BTreeMap<BudgetKey, BudgetDetails>,
}

/// What a budget is, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct BudgetDetails {
    /// In bytes, seconds, or calls.
    pub value: u64,
    /// Where it comes from.
    pub source: BudgetSource,
}

/// Where a budget comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetSource {
    /// The application's own setting.
    Application,
    /// The model's configuration.
    Model,
    /// What the controller says for all models.
    Controller,
    /// Nobody set it.
    Default,
}

/// An endpoint and what it is related to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EndpointDetails {
    /// Its role.
    pub role: Role,
    /// Its interface.
    pub interface: InterfaceName,
    /// The relations that it stands in.
    pub relations: Vec<RelationId>,
}

/// Where a setting's value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SettingSource {
    /// Nobody set it, and the charm has a default.
    Default,
    /// The operator set it.
    User,
    /// Nobody set it, and there is no default.
    Unset,
}

/// An option of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SettingDetails {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// What it is for.
    pub description: String,
    /// The charm's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<OptionValue>,
    /// What hooks read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<OptionValue>,
    /// Where that comes from.
    pub source: SettingSource,
}

/// A resource of an application, as `resources` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceDetails {
    /// Its name.
    pub name: ResourceName,
    /// What the application's charm says of it.
    pub meta: ResourceMeta,
    /// Its content; none: none was attached.
    pub attached: Option<ResourceRevision>,
    /// The application's units, and the revision that each was last told of; none: it was told of none.
    pub units: BTreeMap<UnitName, Option<ResourceRevision>>,
}

/// A secret, as `secrets` and `show-secret` show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretDetails {
    /// Its id.
    pub id: SecretId,
    /// Whose it is.
    pub owner: SecretOwner,
    /// The latest revision, or the one that was asked for.
    pub revision: SecretRevision,
    /// The name of a secret of the model's users, the label of any other.
    pub label: Option<String>,
    /// For people.
    pub description: String,
    /// How often it is to be rotated.
    pub rotate: RotatePolicy,
    /// When rotation is due next.
    pub next_rotate: Option<Timestamp>,
    /// When that revision expires.
    pub expire: Option<Timestamp>,
    /// Whether revisions that nobody reads go by themselves.
    pub auto_prune: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
    /// All revisions that are there.
    pub revisions: BTreeMap<SecretRevision, SecretRevisionDetails>,
    /// Who may read it.
    pub access: Vec<SecretAccess>,
    /// The content of that revision, if it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<SecretData>,
}

/// One revision of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretRevisionDetails {
    /// When it was made.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
    /// When it expires.
    pub expire: Option<Timestamp>,
}

/// Who may read a secret, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretAccess {
    /// `application-NAME` or `unit-NAME-NUMBER`.
    pub target: String,
    /// What it is tied to: `relation-KEY` or `model-UUID`.
    pub scope: String,
    /// What may be done: `view`.
    pub role: String,
}

/// What is asked of secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretQuery {
    /// With content. Needs the right to administer the model.
    pub reveal: bool,
    /// The content of this revision; none: of the latest.
    pub revision: Option<SecretRevision>,
}
