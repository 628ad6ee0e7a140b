//! What the controller keeps: one struct per kind of entity, each with the key that it stands under.

use std::sync::Arc;

use periapt_host_api::{
    ActionOperationId, AgentName, ApplicationName, CharmDigest, MachineId, ModelUuid, RelationId, StorageId,
    TaskId, UnitName,
    relation::BagKey,
    secret::{SecretId, SecretRevision},
    state::StateKey,
};
use serde::{Deserialize, Serialize};

mod sequence;

pub use crate::action::entity::{ActionOperation, Task};
pub use crate::agent::entity::{Agent, Runner};
pub use crate::application::entity::Application;
pub use crate::charm::entity::{Charm, ModelCharm};
pub use crate::controller::entity::Controller;
pub use crate::machine::entity::Machine;
pub use crate::model::entity::Model;
pub use crate::offer::entity::{Offer, RemoteApplication, RemoteSource};
pub use crate::relation::entity::{Bag, Cross, CrossId, CrossSide, Member, Relation, RelationProgress};
pub use crate::resource::entity::{AttachedResource, FormerContent, ResourceContent};
pub(crate) use crate::secret::entity::PART_BYTES;
pub use crate::secret::entity::{Secret, SecretConsumer, SecretContent, SecretExpiry};
pub use crate::storage::entity::Storage;
pub use crate::unit::entity::{CommitMark, Refreshed, Unit};
pub use crate::unit::event::entity::PendingEvents;
pub use crate::unit::state::entity::StateEntry;
pub use crate::work::entity::{Work, WorkId, WorkItem};
pub use sequence::{Sequence, SequenceKey};

/// Where an entity stands. All entities of one model are neighbours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntityKey {
    /// The controller itself.
    Controller,
    /// An agent.
    Agent(AgentName),
    /// An uploaded charm.
    Charm(CharmDigest),
    /// Content that was uploaded for resources.
    ResourceContent(CharmDigest),
    /// Something in a model.
    InModel(ModelUuid, ModelKey),
}

/// Where an entity stands in its model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKey {
    /// The model itself.
    Model,
    /// A charm that the model uses.
    Charm(CharmDigest),
    /// A counter.
    Sequence(SequenceKey),
    /// An agent's runner of this model.
    Runner(AgentName),
    /// An application.
    Application(ApplicationName),
    /// What is offered to other models, by the offer's name.
    Offer(ApplicationName),
    /// An application of another model, by its name here.
    RemoteApplication(ApplicationName),
    /// A machine.
    Machine(MachineId),
    /// A unit.
    Unit(UnitName),
    /// A relation.
    Relation(RelationId),
    /// A unit in a relation's scope.
    Member(RelationId, UnitName),
    /// A bag.
    Bag(BagKey),
    /// A key of a unit's state.
    State(StateKey),
    /// The events that a unit waits for.
    Events(UnitName),
    /// A request to run an action.
    ActionOperation(ActionOperationId),
    /// A run of an action on a unit.
    Task(TaskId),
    /// Storage.
    Storage(StorageId),
    /// A secret.
    Secret(SecretId),
    /// One revision of a secret.
    SecretContent(SecretId, SecretRevision),
    /// What became of one revision's expiry.
    SecretExpiry(SecretId, SecretRevision),
    /// What a unit tracks of a secret.
    SecretConsumer(SecretId, UnitName),
    /// Something that the controller has still to do.
    Work(WorkId),
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident),* $(,)?) => {
        /// An entity of any kind.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Entity {
            $($(#[$doc])* $variant(Arc<$variant>),)*
        }

        impl Entity {
            /// Where it lies in memory: as long as both are held, two that lie at one place are one.
            pub fn address(&self) -> *const () {
                match self {
                    $(Self::$variant(entity) => Arc::as_ptr(entity).cast(),)*
                }
            }
        }

        $(impl From<$variant> for Entity {
            fn from(entity: $variant) -> Self {
                Self::$variant(Arc::new(entity))
            }
        })*
    };
}

kinds! {
    /// The controller itself.
    Controller,
    /// An agent.
    Agent,
    /// An uploaded charm.
    Charm,
    /// Content that was uploaded for resources.
    ResourceContent,
    /// A model.
    Model,
    /// A charm that a model uses.
    ModelCharm,
    /// A counter.
    Sequence,
    /// An agent's runner of a model.
    Runner,
    /// An application.
    Application,
    /// What is offered to other models.
    Offer,
    /// An application of another model.
    RemoteApplication,
    /// A machine.
    Machine,
    /// A unit.
    Unit,
    /// A relation.
    Relation,
    /// A unit in a relation's scope.
    Member,
    /// A bag.
    Bag,
    /// A key of a unit's state.
    StateEntry,
    /// The events that a unit waits for.
    PendingEvents,
    /// A request to run an action.
    ActionOperation,
    /// A run of an action on a unit.
    Task,
    /// Storage.
    Storage,
    /// A secret.
    Secret,
    /// One revision of a secret.
    SecretContent,
    /// What became of one revision's expiry.
    SecretExpiry,
    /// What a unit tracks of a secret.
    SecretConsumer,
    /// Something that the controller has still to do.
    WorkItem,
}

impl Entity {
    /// Whether the entity may stand under a key: of its kind, and named as it says itself.
    pub fn stands_under(&self, key: &EntityKey) -> bool {
        match (self, key) {
            (Self::Controller(_), EntityKey::Controller) => true,
            (Self::Agent(agent), EntityKey::Agent(name)) => agent.name == *name,
            (Self::Charm(charm), EntityKey::Charm(digest)) => charm.digest == *digest,
            (Self::ResourceContent(content), EntityKey::ResourceContent(digest)) => content.digest == *digest,
            (Self::Model(model), EntityKey::InModel(uuid, ModelKey::Model)) => model.uuid == *uuid,
            (_, EntityKey::InModel(_, key)) => self.model_key().as_ref() == Some(key),
            _ => false,
        }
    }

    /// The key in its model; none for what is in no model.
    pub fn model_key(&self) -> Option<ModelKey> {
        Some(match self {
            Self::Controller(_) | Self::Agent(_) | Self::Charm(_) | Self::ResourceContent(_) => return None,
            Self::Model(_) => ModelKey::Model,
            Self::ModelCharm(charm) => ModelKey::Charm(charm.digest),
            Self::Sequence(sequence) => ModelKey::Sequence(sequence.key.clone()),
            Self::Runner(runner) => ModelKey::Runner(runner.agent.clone()),
            Self::Application(application) => ModelKey::Application(application.name.clone()),
            Self::Offer(offer) => ModelKey::Offer(offer.name.clone()),
            Self::RemoteApplication(remote) => ModelKey::RemoteApplication(remote.name.clone()),
            Self::Machine(machine) => ModelKey::Machine(machine.id),
            Self::Unit(unit) => ModelKey::Unit(unit.name.clone()),
            Self::Relation(relation) => ModelKey::Relation(relation.id),
            Self::Member(member) => ModelKey::Member(member.relation, member.unit.clone()),
            Self::Bag(bag) => ModelKey::Bag(bag.key.clone()),
            Self::StateEntry(entry) => ModelKey::State(entry.key.clone()),
            Self::PendingEvents(events) => ModelKey::Events(events.unit.clone()),
            Self::ActionOperation(operation) => ModelKey::ActionOperation(operation.id),
            Self::Task(task) => ModelKey::Task(task.id),
            Self::Storage(storage) => ModelKey::Storage(storage.id.clone()),
            Self::Secret(secret) => ModelKey::Secret(secret.id),
            Self::SecretContent(content) => ModelKey::SecretContent(content.id, content.revision),
            Self::SecretExpiry(expiry) => ModelKey::SecretExpiry(expiry.id, expiry.revision),
            Self::SecretConsumer(consumer) => ModelKey::SecretConsumer(consumer.id, consumer.unit.clone()),
            Self::WorkItem(item) => ModelKey::Work(item.id),
        })
    }
}
