//! The answers to commands, and the controller's description of itself.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApplicationName, Digest, ModelName, ModelUuid, RelationId, StorageId, TagName, TaskId,
    Timestamp, UnitName, UserName,
    access::ModelAccess,
    action::{EnqueuedOperation, TaskStatus},
    offer::OfferUrl,
    program::{ProgramTarget, RunningProgram},
    relation::Endpoint,
    secret::SecretId,
};

/// The effect of a command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The command is carried out; there is nothing to report.
    Done,
    /// A model was made.
    Model {
        /// The model's UUID, which never changes.
        uuid: ModelUuid,
    },
    /// An application was made.
    Application {
        /// The application's name.
        name: ApplicationName,
        /// The first units.
        units: Vec<UnitName>,
    },
    /// Units were added.
    Units {
        /// The new units.
        units: Vec<UnitName>,
    },
    /// Storage was added.
    Storage {
        /// The new storage instances.
        storage: Vec<StorageId>,
    },
    /// A resource has the attached content.
    Resource {
        /// The revision of that content.
        revision: u64,
        /// True if the revision is new; attaching the same content again makes none.
        fresh: bool,
    },
    /// A relation was made.
    Relation {
        /// The relation's id.
        id: RelationId,
        /// The relation's ends.
        endpoints: Vec<Endpoint>,
    },
    /// Endpoints are offered.
    Offer {
        /// The offer's URL, which other models use.
        url: OfferUrl,
    },
    /// An offer is consumed in this model.
    Consumed {
        /// The offer's name in this model.
        application: ApplicationName,
        /// The offer's URL.
        url: OfferUrl,
    },
    /// An action is enqueued.
    Operation(EnqueuedOperation),
    /// A task was cancelled, or is being stopped.
    Task {
        /// The task.
        id: TaskId,
        /// Cancelled or aborting.
        status: TaskStatus,
    },
    /// A secret was made, or exists already.
    Secret {
        /// The secret's id.
        id: SecretId,
    },
    /// A part of a model that migrates here has come.
    Import {
        /// The number of the page that is expected next.
        next: u64,
    },
    /// An entity is being removed, or is removed.
    Removal {
        /// True if it is removed already.
        gone: bool,
        /// The conditions that the removal waits for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits_for: Vec<String>,
    },
}

/// A model in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelSummary {
    /// The UUID, which never changes.
    pub uuid: ModelUuid,
    /// The model's name.
    pub name: ModelName,
    /// The user who made the model.
    pub owner: UserName,
    /// The model's life.
    pub life: crate::status::Life,
    /// The time of the last change of life.
    pub life_since: Timestamp,
    /// The time when the model was made.
    pub created_at: Timestamp,
    /// The caller's access to the model.
    pub access: ModelAccess,
    /// The number of applications.
    pub applications: u32,
    /// The number of units.
    pub units: u32,
    /// The number of machines.
    pub machines: u32,
}

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AgentSummary {
    /// The agent's name.
    pub name: AgentName,
    /// True if the agent is connected, or was within the last 30 seconds.
    pub alive: bool,
    /// The addresses of the host, the preferred first.
    pub addresses: Vec<String>,
    /// The availability zone of the host; may be empty.
    #[serde(default)]
    pub availability_zone: String,
    /// The tags that constraints match to place units on the agent.
    #[serde(default)]
    pub tags: BTreeSet<TagName>,
    /// The agent's version.
    pub version: String,
    /// The program that the agent runs; none from agents that do not replace themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<RunningProgram>,
    /// The number of machines that the agent hosts, over all models.
    pub machines: u32,
    /// The number of units that the agent runs, over all models.
    pub units: u32,
    /// The time when the controller last heard of the agent.
    pub last_seen: Option<Timestamp>,
}

/// The answer to `GET /v1/controller`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerInfo {
    /// The controller's name.
    pub name: String,
    /// The UUID, which never changes.
    pub uuid: uuid::Uuid,
    /// Periapt's version.
    pub version: String,
    /// The name and version of the engine that runs hooks.
    pub engine: String,
    /// The id of the controller's store.
    pub store: crate::StoreId,
    /// The newest revision of the store.
    pub revision: crate::Revision,
    /// True if the controller accepts writes now.
    pub writable: bool,
    /// The reason why it does not; none of controllers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// True if the controller is not up to date with its log, and shows no state until it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// The level of what is stored.
    #[serde(default)]
    pub level: crate::Level,
    /// The URLs by which clients reach the controllers of this store; none from controllers of earlier versions.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// The object store that has the blobs; none: the controllers' own disks have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blobs: Option<String>,
    /// The controllers that share the log; none for a controller that is alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberInfo>,
    /// The entries that the log has, as the controller that leads tells; none for a controller that is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogUse>,
    /// The controller's own workers that failed a short while ago, and are started again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing_workers: Vec<FailingWorker>,
    /// The program that the controller runs; none from one that does not replace itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<RunningProgram>,
    /// The program that all controllers and agents are to run, once an operator has set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ProgramTarget>,
}

/// A worker of a controller that failed a short while ago.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FailingWorker {
    /// The worker's name.
    pub name: String,
    /// The time of the first failure.
    pub since: Timestamp,
    /// The failures since then.
    pub failures: u32,
    /// The reason of the last one.
    pub message: String,
}

/// The entries that the log of several controllers has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LogUse {
    /// Their number.
    pub entries: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The most bytes that the log has. Entries beyond it are trimmed even if a controller still needs them.
    pub bound: u64,
}

impl LogUse {
    /// Returns true if the log is larger than half of its bound: a controller is away, or does not keep up.
    pub fn is_large(&self) -> bool {
        self.bytes > self.bound / 2
    }
}

/// One of several controllers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct MemberInfo {
    /// Its name among them.
    pub name: String,
    /// The URL by which clients reach it.
    pub url: String,
    /// Its role.
    pub role: MemberRole,
    /// True if it is not up to date with the log, and shows no state until it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
    /// True if the log does not have any more what it needs next: it takes the state of the controller that leads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// True if it has not reported to the controller that leads for some seconds; never of controllers of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
    /// The last revision that it is known to have applied.
    pub revision: crate::Revision,
    /// The highest level that its program knows.
    #[serde(default)]
    pub level: crate::Level,
    /// The program that it runs; none of one that does not replace itself, or that has not reported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<RunningProgram>,
    /// Its workers that failed a short while ago; none of one that has not reported for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing_workers: Vec<FailingWorker>,
}

/// The role of one of several controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MemberRole {
    /// Its writer evaluates commands.
    Leader,
    /// It applies what the leader writes, serves reads, and passes commands on.
    Follower,
}

/// The answer to an upload of a charm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmUploaded {
    /// The digest that `deploy` names.
    pub digest: Digest,
    /// The charm's metadata.
    pub meta: crate::charm::CharmMeta,
}

/// The answer to an upload of a resource's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUploaded {
    /// The digest that `attach-resource` names.
    pub digest: Digest,
    /// The size of the content, in bytes.
    pub size: u64,
}
