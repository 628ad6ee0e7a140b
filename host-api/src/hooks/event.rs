//! What a charm's handler is told (`hook-model.md` 4.1).

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, EndpointName, EventId, RelationId, StorageId, TaskId, UnitName,
    secret::{SecretContext, SecretRevision},
};

/// The relation that an event is about, as this unit sees it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelationContext {
    /// The endpoint of this unit's side.
    pub endpoint: EndpointName,
    /// The relation.
    pub relation: RelationId,
    /// The application at the other end; in a peer relation the unit's own.
    pub remote_application: ApplicationName,
}

/// The most members that one batch names: reading the bags of so many is well within a hook's budgets, and the record
/// of a batch that failed stays small, however long the names. Whoever is left out is in the next batch.
pub const MAX_BATCH_MEMBERS: usize = 256;

/// What happened in a relation since the unit's last hook of it, for charms that ask for batches. No unit stands in two of
/// the three sets, and together they name at most [`MAX_BATCH_MEMBERS`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct RelationBatch {
    /// Whether the remote application's bag changed.
    pub application_changed: bool,
    /// Units that came into view.
    pub joined: BTreeSet<UnitName>,
    /// Members whose bag changed.
    pub changed: BTreeSet<UnitName>,
    /// Members that went out of view.
    pub departed: BTreeSet<UnitName>,
    /// This unit, if it is the one that leaves; the members in `departed` leave otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departing_unit: Option<UnitName>,
}

impl RelationBatch {
    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        !self.application_changed && self.members().next().is_none()
    }

    /// All units that it names.
    pub fn members(&self) -> impl Iterator<Item = &UnitName> {
        self.joined.iter().chain(&self.changed).chain(&self.departed)
    }
}

/// The storage that an event is about. There are filesystems only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageContext {
    /// The instance.
    pub storage: StorageId,
    /// Where the unit finds it.
    pub location: String,
}

/// One event, with all that the handler is told of it.
///
/// Kinds are added as the model learns them; a kind that was ever stored keeps its name for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Once per unit.
    Install,
    /// After the first config-changed, and after a reboot of the host.
    Start,
    /// Teardown.
    Stop,
    /// The last of all.
    Remove,
    /// Before start, and whenever settings, trust or addresses differ from those last seen.
    ConfigChanged,
    /// A new charm or resource is in place.
    UpgradeCharm,
    /// The timer.
    UpdateStatus,
    /// This unit became leader.
    LeaderElected,
    /// Leader settings changed, and this unit is not leader.
    LeaderSettingsChanged,
    /// The relation's scope was entered.
    RelationCreated(RelationContext),
    /// A remote unit came into view.
    RelationJoined {
        /// The relation.
        relation: RelationContext,
        /// Who joined.
        remote_unit: UnitName,
    },
    /// A bag changed.
    RelationChanged {
        /// The relation.
        relation: RelationContext,
        /// Whose bag; none: the remote application's.
        remote_unit: Option<UnitName>,
    },
    /// A remote unit went out of view.
    RelationDeparted {
        /// The relation.
        relation: RelationContext,
        /// Whom this unit sees no more.
        remote_unit: UnitName,
        /// Who leaves: this unit itself, if it is the one.
        departing_unit: UnitName,
    },
    /// The relation ends for this unit.
    RelationBroken(RelationContext),
    /// In place of joined, changed and departed: all that happened since the last hook of the relation.
    RelationBatch {
        /// The relation.
        relation: RelationContext,
        /// What happened.
        batch: RelationBatch,
    },
    /// An operator runs an action.
    Action {
        /// The action.
        name: String,
        /// The task.
        task: TaskId,
    },
    /// What the charm asked to be told, in a hook before.
    Custom {
        /// Its number.
        id: EventId,
        /// The charm's name for it.
        name: String,
        /// JSON text, as the charm gave it.
        data: String,
    },
    /// Storage is there.
    StorageAttached(StorageContext),
    /// Storage is about to go.
    StorageDetaching(StorageContext),
    /// A secret that the unit reads has a newer revision than the one that it tracks (S-2).
    SecretChanged(SecretContext),
    /// Rotation of a secret of the unit's, or of the application that it leads, is due (S-9).
    SecretRotate(SecretContext),
    /// A revision of such a secret expired (S-9).
    SecretExpired {
        /// The secret.
        secret: SecretContext,
        /// Which revision.
        revision: SecretRevision,
    },
    /// A revision of such a secret is read by nobody any more (S-8).
    SecretRemove {
        /// The secret.
        secret: SecretContext,
        /// Which revision.
        revision: SecretRevision,
    },
}

impl Event {
    /// The hook's full name, such as `db-relation-joined`; an action's or a custom event's own.
    pub fn hook_name(&self) -> String {
        match (self, self.relation(), self.storage()) {
            (Self::Action { name, .. } | Self::Custom { name, .. }, ..) => name.clone(),
            (_, Some(context), _) => format!("{}-{}", context.endpoint, self.kind()),
            (_, None, Some(context)) => format!("{}-{}", context.storage.name(), self.kind()),
            (_, None, None) => self.kind().to_owned(),
        }
    }

    /// The kind alone, such as `relation-joined`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Start => "start",
            Self::Stop => "stop",
            Self::Remove => "remove",
            Self::ConfigChanged => "config-changed",
            Self::UpgradeCharm => "upgrade-charm",
            Self::UpdateStatus => "update-status",
            Self::LeaderElected => "leader-elected",
            Self::LeaderSettingsChanged => "leader-settings-changed",
            Self::RelationCreated(_) => "relation-created",
            Self::RelationJoined { .. } => "relation-joined",
            Self::RelationChanged { .. } => "relation-changed",
            Self::RelationDeparted { .. } => "relation-departed",
            Self::RelationBroken(_) => "relation-broken",
            Self::RelationBatch { .. } => "relation-batch",
            Self::Action { .. } => "action",
            Self::Custom { .. } => "custom",
            Self::StorageAttached(_) => "storage-attached",
            Self::StorageDetaching(_) => "storage-detaching",
            Self::SecretChanged(_) => "secret-changed",
            Self::SecretRotate(_) => "secret-rotate",
            Self::SecretExpired { .. } => "secret-expired",
            Self::SecretRemove { .. } => "secret-remove",
        }
    }

    /// The relation that it is about.
    pub fn relation(&self) -> Option<&RelationContext> {
        match self {
            Self::RelationCreated(relation) | Self::RelationBroken(relation) => Some(relation),
            Self::RelationJoined { relation, .. }
            | Self::RelationChanged { relation, .. }
            | Self::RelationDeparted { relation, .. }
            | Self::RelationBatch { relation, .. } => Some(relation),
            _ => None,
        }
    }

    /// The storage that it is about.
    pub fn storage(&self) -> Option<&StorageContext> {
        match self {
            Self::StorageAttached(storage) | Self::StorageDetaching(storage) => Some(storage),
            _ => None,
        }
    }

    /// The remote unit that it is about.
    pub fn remote_unit(&self) -> Option<&UnitName> {
        match self {
            Self::RelationJoined { remote_unit, .. } | Self::RelationDeparted { remote_unit, .. } => {
                Some(remote_unit)
            }
            Self::RelationChanged { remote_unit, .. } => remote_unit.as_ref(),
            _ => None,
        }
    }

    /// The task that it runs, of an action.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Self::Action { task, .. } => Some(*task),
            _ => None,
        }
    }

    /// The number of the event that the charm asked for.
    pub fn custom(&self) -> Option<EventId> {
        match self {
            Self::Custom { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// The secret that it is about.
    pub fn secret(&self) -> Option<&SecretContext> {
        match self {
            Self::SecretChanged(secret) | Self::SecretRotate(secret) => Some(secret),
            Self::SecretExpired { secret, .. } | Self::SecretRemove { secret, .. } => Some(secret),
            _ => None,
        }
    }

    /// The revision of that secret, in expired and remove hooks.
    pub fn secret_revision(&self) -> Option<SecretRevision> {
        match self {
            Self::SecretExpired { revision, .. } | Self::SecretRemove { revision, .. } => Some(*revision),
            _ => None,
        }
    }

    /// Who leaves, in a departed hook.
    pub fn departing_unit(&self) -> Option<&UnitName> {
        match self {
            Self::RelationDeparted { departing_unit, .. } => Some(departing_unit),
            Self::RelationBatch { batch, .. } => batch.departing_unit.as_ref(),
            _ => None,
        }
    }

    /// What happened in the relation, in a batch.
    pub fn batch(&self) -> Option<&RelationBatch> {
        match self {
            Self::RelationBatch { batch, .. } => Some(batch),
            _ => None,
        }
    }

    /// Whether a run of this event is another attempt of `other`: a batch that is tried again holds what has happened
    /// by then.
    pub fn is_attempt_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::RelationBatch { relation, .. }, Self::RelationBatch { relation: others, .. }) => {
                relation == others
            }
            _ => self == other,
        }
    }
}

/// Kinds whose hooks have no other name.
const PLAIN: [&str; 17] = [
    "install",
    "start",
    "stop",
    "remove",
    "config-changed",
    "upgrade-charm",
    "update-status",
    "leader-elected",
    "leader-settings-changed",
    "secret-changed",
    "secret-rotate",
    "secret-expired",
    "secret-remove",
    "pre-series-upgrade",
    "post-series-upgrade",
    "collect-metrics",
    "meter-status-changed",
];

/// What the names of all other hooks end with, after the name of an endpoint, a storage or a container.
const ENDINGS: [&str; 12] = [
    "-relation-created",
    "-relation-joined",
    "-relation-changed",
    "-relation-departed",
    "-relation-broken",
    "-relation-batch",
    "-storage-attached",
    "-storage-detaching",
    "-pebble-ready",
    "-pebble-custom-notice",
    "-pebble-check-failed",
    "-pebble-check-recovered",
];

/// Whether a hook is, or could be, called so (`hook-model.md` 4.1).
pub(crate) fn is_hook_name(name: &str) -> bool {
    PLAIN.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The full hook name.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hook_name())
    }
}
