//! The kinds of entities that the controller keeps. Each kind is declared once, in `kinds.rs`, with its key, its
//! table in a model's state, and its derived indexes. Macros generate from the declaration
//!
//! - here: [`Entity`], [`EntityKey`] and [`ModelKey`] with their stored forms (the names of kinds and keys in
//!   kebab-case), and the check that an entity matches its key;
//! - in `root/state/kinds.rs`: the tables, `get`, `put` and `delete`, the indexes, the differences of two states, and
//!   the list of all entities of a model.

use std::{fmt, sync::Arc};

use periapt_host_api::{
    ActionOperationId, AgentName, ApplicationName, Digest, MachineId, ModelUuid, RelationId, StorageId,
    TaskId, UnitName, UserName,
    relation::BagKey,
    secret::{SecretId, SecretRevision},
    state::StateKey,
};
use serde::{Deserialize, Serialize};

mod kinds;
mod sequence;

pub use crate::action::entity::{ActionOperation, Task};
pub use crate::agent::entity::{Agent, AgentPool, Enrolment, JoinToken, Runner};
pub use crate::answer::entity::{AnswerKey, KeptAnswer, KeptOutput, UnitRange};
pub use crate::application::entity::Application;
pub use crate::audit::entity::AuditHead;
pub use crate::charm::entity::{Charm, MetaReader, ModelCharm};
pub use crate::controller::entity::{Controller, ControllerMember};
pub use crate::machine::entity::Machine;
pub use crate::migration::entity::{Export, Failed, Import, Migration, Moved};
pub use crate::model::entity::Model;
pub use crate::offer::entity::{Offer, RemoteApplication, RemoteSource};
pub use crate::relation::entity::{
    Bag, CrossModelId, CrossModelPart, CrossModelSide, Member, Relation, RelationProgress,
};
pub use crate::resource::entity::{AttachedResource, FormerContent, ResourceContent};
pub(crate) use crate::secret::entity::PART_BYTES;
pub use crate::secret::entity::{Secret, SecretConsumer, SecretContent, SecretExpiry};
pub use crate::storage::entity::Storage;
pub use crate::unit::entity::{CommitMark, StatusRefreshes, Unit};
pub use crate::unit::event::entity::PendingEvents;
pub use crate::unit::state::entity::StateEntry;
pub use crate::unit::workloads::entity::ReportedWorkloads;
pub use crate::user::entity::{
    ModelGrant, OfferGrant, PasswordHash, Registration, Session, SessionKind, User,
};
pub use crate::user::uploaders::Uploaders;
pub use crate::work::entity::{Work, WorkId, WorkItem};
pub(crate) use kinds::kinds;
pub use sequence::{Sequence, SequenceKey};

/// A kind of entity that belongs to a model.
pub(crate) trait Kind: PartialEq {
    /// The key that identifies an entity of this kind within its model.
    type Key: Clone + fmt::Debug + Ord;

    /// Returns the entity's key.
    fn key(&self) -> Self::Key;
}

/// Expands to the type of a key: the type of its only part, or a tuple.
macro_rules! key_type {
    ($only:ty) => { $only };
    ($($part:ty),+) => { ($($part),+) };
}

macro_rules! entities {
    (
        controller { $($(#[$top_doc:meta])* $top:ident: $top_key:ident($top_field:ident: $top_type:ty) $top_rest:tt)* }
        model { $($(#[$doc:meta])* $kind:ident: $key:ident($($field:ident: $type:ty),+) $rest:tt)* }
    ) => {
        /// The key of an entity. The entities of one model are adjacent in key order.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum EntityKey {
            /// The controller itself.
            Controller,
            $($(#[$top_doc])* $top_key($top_type),)*
            /// An entity of a model.
            InModel(ModelUuid, ModelKey),
        }

        /// The key of an entity within its model.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum ModelKey {
            /// The model itself.
            Model,
            $($(#[$doc])* $key($($type),+),)*
        }

        /// An entity of any kind.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Entity {
            /// The controller itself.
            Controller(Arc<Controller>),
            $($(#[$top_doc])* $top(Arc<$top>),)*
            /// A model.
            Model(Arc<Model>),
            $($(#[$doc])* $kind(Arc<$kind>),)*
        }

        impl Entity {
            /// Returns the entity's address in memory. While both `Arc`s are held, equal addresses mean the same
            /// entity.
            pub fn address(&self) -> *const () {
                match self {
                    Self::Controller(entity) => Arc::as_ptr(entity).cast(),
                    $(Self::$top(entity) => Arc::as_ptr(entity).cast(),)*
                    Self::Model(entity) => Arc::as_ptr(entity).cast(),
                    $(Self::$kind(entity) => Arc::as_ptr(entity).cast(),)*
                }
            }

            /// Returns true if the entity is of the key's kind and its own key fields equal the key.
            pub fn stands_under(&self, key: &EntityKey) -> bool {
                match (self, key) {
                    (Self::Controller(_), EntityKey::Controller) => true,
                    $((Self::$top(entity), EntityKey::$top_key(key)) => entity.$top_field == *key,)*
                    (Self::Model(model), EntityKey::InModel(uuid, ModelKey::Model)) => model.uuid == *uuid,
                    (_, EntityKey::InModel(_, key)) => self.model_key().as_ref() == Some(key),
                    _ => false,
                }
            }

            /// Returns the entity's key in its model, or none for an entity that belongs to no model.
            pub fn model_key(&self) -> Option<ModelKey> {
                match self {
                    Self::Controller(_) $(| Self::$top(_))* => None,
                    Self::Model(_) => Some(ModelKey::Model),
                    $(Self::$kind(entity) => Some(ModelKey::$key($(Clone::clone(&entity.$field)),+)),)*
                }
            }
        }

        impl From<Controller> for Entity {
            fn from(entity: Controller) -> Self {
                Self::Controller(Arc::new(entity))
            }
        }

        impl From<Model> for Entity {
            fn from(entity: Model) -> Self {
                Self::Model(Arc::new(entity))
            }
        }

        $(impl From<$top> for Entity {
            fn from(entity: $top) -> Self {
                Self::$top(Arc::new(entity))
            }
        })*

        $(impl From<$kind> for Entity {
            fn from(entity: $kind) -> Self {
                Self::$kind(Arc::new(entity))
            }
        }

        impl Kind for $kind {
            type Key = key_type!($($type),+);

            fn key(&self) -> Self::Key {
                ($(Clone::clone(&self.$field)),+)
            }
        })*
    };
}

kinds!(entities);
