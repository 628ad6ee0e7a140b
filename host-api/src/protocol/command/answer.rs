//! What commands answer, and what the controller tells of itself.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentName, ApplicationName, Digest, ModelName, ModelUuid, RelationId, StorageId, TagName, TaskId,
    Timestamp, UnitName, UserName,
    action::{EnqueuedOperation, TaskStatus},
    offer::OfferUrl,
    problem::Refusal,
    relation::Endpoint,
    secret::SecretId,
};

/// What a command did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// There is nothing to tell.
    Done,
    /// A model was made.
    Model {
        /// For ever.
        uuid: ModelUuid,
    },
    /// An application was made.
    Application {
        /// Its name.
        name: ApplicationName,
        /// Its first units.
        units: Vec<UnitName>,
    },
    /// Units were added.
    Units {
        /// Their names.
        units: Vec<UnitName>,
    },
    /// Storage was added.
    Storage {
        /// The new instances.
        storage: Vec<StorageId>,
    },
    /// A resource has the content that was attached.
    Resource {
        /// Which revision that is.
        revision: u64,
        /// Whether it is a new one: the same content again is none.
        fresh: bool,
    },
    /// A relation was made.
    Relation {
        /// Its number.
        id: RelationId,
        /// Its ends.
        endpoints: Vec<Endpoint>,
    },
    /// Endpoints are offered.
    Offer {
        /// How other models name the offer.
        url: OfferUrl,
    },
    /// An offer is known in this model.
    Consumed {
        /// By this name.
        application: ApplicationName,
        /// Which.
        url: OfferUrl,
    },
    /// An action will run.
    Operation(EnqueuedOperation),
    /// A task was cancelled, or is being stopped.
    Task {
        /// Which.
        id: TaskId,
        /// Cancelled or aborting.
        status: TaskStatus,
    },
    /// A secret was made, or is there.
    Secret {
        /// Its id.
        id: SecretId,
    },
    /// Something is on its way out, or gone.
    Removal {
        /// Whether it is gone already.
        gone: bool,
        /// What it waits for else.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        waits_for: Vec<String>,
    },
}

/// The result of one command in a bulk call: as many and in the same order as the commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandResult<T> {
    /// It happened.
    Ok(T),
    /// Nothing of it happened.
    Error(Refusal),
}

impl<T> From<Result<T, Refusal>> for CommandResult<T> {
    fn from(result: Result<T, Refusal>) -> Self {
        match result {
            Ok(answer) => Self::Ok(answer),
            Err(refusal) => Self::Error(refusal),
        }
    }
}

impl<T> From<CommandResult<T>> for Result<T, Refusal> {
    fn from(result: CommandResult<T>) -> Self {
        match result {
            CommandResult::Ok(answer) => Ok(answer),
            CommandResult::Error(refusal) => Err(refusal),
        }
    }
}

/// `POST /v1/models/MODEL/commands`: each stands by itself; one that is refused does not stop the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Commands<C> {
    /// In order.
    pub commands: Vec<C>,
}

/// The answer to [`Commands`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CommandResults<T> {
    /// One for each command, in the same order.
    pub results: Vec<CommandResult<T>>,
    /// The revision at which all of this can be read.
    pub revision: crate::Revision,
}

/// A model in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelSummary {
    /// For ever.
    pub uuid: ModelUuid,
    /// Name.
    pub name: ModelName,
    /// Who made it.
    pub owner: UserName,
    /// Life.
    pub life: crate::status::Life,
    /// Since when it is as alive as it is.
    pub life_since: Timestamp,
    /// When it was made.
    pub created_at: Timestamp,
    /// Applications in it.
    pub applications: u32,
    /// Units in it.
    pub units: u32,
    /// Machines in it.
    pub machines: u32,
}

/// An agent in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AgentSummary {
    /// Name.
    pub name: AgentName,
    /// Whether it is connected.
    pub alive: bool,
    /// Addresses, the preferred first.
    pub addresses: Vec<String>,
    /// Where its host stands; may be empty.
    #[serde(default)]
    pub availability_zone: String,
    /// Words by which units are placed on it.
    #[serde(default)]
    pub tags: BTreeSet<TagName>,
    /// Its version.
    pub version: String,
    /// Machines that it hosts, over all models.
    pub machines: u32,
    /// Units that it runs, over all models.
    pub units: u32,
    /// When it was last heard of.
    pub last_seen: Option<Timestamp>,
}

/// `GET /v1/controller`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerInfo {
    /// The controller's name.
    pub name: String,
    /// For ever.
    pub uuid: uuid::Uuid,
    /// Periapt's version.
    pub version: String,
    /// The engine that hooks run in, and its version.
    pub engine: String,
    /// The store.
    pub store: crate::StoreId,
    /// Where it is.
    pub revision: crate::Revision,
    /// Whether writes are accepted now.
    pub writable: bool,
}

/// The answer to an upload of a charm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmUploaded {
    /// By this it is deployed.
    pub digest: Digest,
    /// What it declares.
    pub meta: crate::charm::CharmMeta,
}

/// The answer to an upload of a resource's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUploaded {
    /// By this it is attached.
    pub digest: Digest,
    /// Bytes that came.
    pub size: u64,
}
