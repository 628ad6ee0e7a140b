//! Events that a charm handles (`docs/hook-model.md` 4.1).

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, ContainerName, EndpointName, EventId, RelationId, StorageId, TaskId, UnitName,
    notice::{NoticeContext, WorkloadNotice},
    secret::{SecretContext, SecretRevision},
};

/// The relation of an event, from this unit's side.
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

/// The most members that one batch names. A hook's budgets allow to read the bags of so many, and the record of a
/// failed batch stays small even with long names. The next batch names the remaining members.
pub const MAX_BATCH_MEMBERS: usize = 256;

/// The changes in a relation since the unit's last hook of it, for charms that ask for batches. The three sets are
/// disjoint, and together they name at most [`MAX_BATCH_MEMBERS`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct RelationBatch {
    /// True if the remote application's bag changed.
    pub application_changed: bool,
    /// Units that came into view.
    pub joined: BTreeSet<UnitName>,
    /// Members whose bag changed.
    pub changed: BTreeSet<UnitName>,
    /// Members that went out of view.
    pub departed: BTreeSet<UnitName>,
    /// This unit, if it leaves the relation itself. Otherwise the members in `departed` leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departing_unit: Option<UnitName>,
}

impl RelationBatch {
    /// Returns true if nothing changed.
    pub fn is_empty(&self) -> bool {
        !self.application_changed && self.members().next().is_none()
    }

    /// Returns all units that the batch names.
    pub fn members(&self) -> impl Iterator<Item = &UnitName> {
        self.joined.iter().chain(&self.changed).chain(&self.departed)
    }
}

/// The storage of an event. All storage is a filesystem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StorageContext {
    /// The storage instance.
    pub storage: StorageId,
    /// The path of the storage in the sandbox.
    pub location: String,
}

/// An event, with all data that its handler gets.
///
/// A kind that was ever stored keeps its name for ever.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// The first hook of a unit; runs once.
    Install,
    /// Runs after the first config-changed, and after a reboot of the host.
    Start,
    /// Runs when the unit is removed, before `Remove`.
    Stop,
    /// The last hook of a unit.
    Remove,
    /// Runs before start, and whenever settings, trust or addresses differ from those last seen.
    ConfigChanged,
    /// A new charm or a new resource revision is in use.
    UpgradeCharm,
    /// The timer of update-status has fired.
    UpdateStatus,
    /// This unit became leader.
    LeaderElected,
    /// Leader settings changed, and this unit is not leader.
    LeaderSettingsChanged,
    /// The unit entered the relation's scope.
    RelationCreated(RelationContext),
    /// A remote unit came into view.
    RelationJoined {
        /// The relation.
        relation: RelationContext,
        /// The unit that joined.
        remote_unit: UnitName,
    },
    /// A bag changed.
    RelationChanged {
        /// The relation.
        relation: RelationContext,
        /// The unit whose bag changed. `None` means the remote application's bag.
        remote_unit: Option<UnitName>,
    },
    /// A remote unit went out of view.
    RelationDeparted {
        /// The relation.
        relation: RelationContext,
        /// The unit that went out of view.
        remote_unit: UnitName,
        /// The unit that leaves: the remote unit, or this unit itself.
        departing_unit: UnitName,
    },
    /// The relation ends for this unit.
    RelationBroken(RelationContext),
    /// All changes since the last hook of the relation, in place of joined, changed and departed.
    RelationBatch {
        /// The relation.
        relation: RelationContext,
        /// The changes.
        batch: RelationBatch,
    },
    /// An operator runs an action.
    Action {
        /// The name of the action.
        name: String,
        /// The task.
        task: TaskId,
    },
    /// A custom event that an earlier hook of the charm asked for.
    Custom {
        /// The event's number.
        id: EventId,
        /// The event's name, as the charm chose it.
        name: String,
        /// The event's data: JSON text, as the charm gave it.
        data: String,
    },
    /// A storage instance is attached.
    StorageAttached(StorageContext),
    /// A storage instance is about to be detached.
    StorageDetaching(StorageContext),
    /// A secret that the unit reads has a newer revision than the one that it tracks (S-2).
    SecretChanged(SecretContext),
    /// A secret that the unit owns, or that its application owns while the unit leads, is due for rotation (S-9).
    SecretRotate(SecretContext),
    /// A revision of an owned secret expired (S-9).
    SecretExpired {
        /// The secret.
        secret: SecretContext,
        /// The revision.
        revision: SecretRevision,
    },
    /// A revision of an owned secret has no consumer left (S-8).
    SecretRemove {
        /// The secret.
        secret: SecretContext,
        /// The revision.
        revision: SecretRevision,
    },
    /// The Pebble of a container listens, for the first time or after a restart.
    PebbleReady {
        /// The container.
        container: ContainerName,
    },
    /// A client of a container's Pebble made a notice of the type `custom`, or repeated it.
    PebbleCustomNotice {
        /// The origin.
        workload: NoticeContext,
        /// The notice's id in Pebble.
        id: u64,
        /// The notice's key.
        key: String,
    },
    /// A check of a container reached its threshold of failures.
    PebbleCheckFailed {
        /// The origin.
        workload: NoticeContext,
        /// The check's name.
        check: String,
    },
    /// A check of a container succeeds again.
    PebbleCheckRecovered {
        /// The origin.
        workload: NoticeContext,
        /// The check's name.
        check: String,
    },
}

/// The kinds of all events, as [`Event::kind`] returns them.
pub const EVENT_KINDS: [&str; 27] = [
    "install",
    "start",
    "stop",
    "remove",
    "config-changed",
    "upgrade-charm",
    "update-status",
    "leader-elected",
    "leader-settings-changed",
    "relation-created",
    "relation-joined",
    "relation-changed",
    "relation-departed",
    "relation-broken",
    "relation-batch",
    "action",
    "custom",
    "storage-attached",
    "storage-detaching",
    "secret-changed",
    "secret-rotate",
    "secret-expired",
    "secret-remove",
    "pebble-ready",
    "pebble-custom-notice",
    "pebble-check-failed",
    "pebble-check-recovered",
];

impl Event {
    /// Returns the event that tells a charm of a workload's notice.
    pub fn of_notice(notice: &WorkloadNotice, workload: NoticeContext) -> Self {
        match notice {
            WorkloadNotice::Custom { id, key } => {
                Self::PebbleCustomNotice { workload, id: *id, key: key.clone() }
            }
            WorkloadNotice::CheckFailed { check } => {
                Self::PebbleCheckFailed { workload, check: check.clone() }
            }
            WorkloadNotice::CheckRecovered { check } => {
                Self::PebbleCheckRecovered { workload, check: check.clone() }
            }
        }
    }

    /// Returns the hook's full name, such as `db-relation-joined`. An action and a custom event have their own name.
    pub fn hook_name(&self) -> String {
        let kind = self.kind();
        match self {
            Self::Action { name, .. } | Self::Custom { name, .. } => name.clone(),
            _ => {
                let endpoint = self.relation().map(|relation| relation.endpoint.to_string());
                let storage = || self.storage().map(|storage| storage.storage.name().to_string());
                let container = || self.container().map(ContainerName::to_string);
                let about = endpoint.or_else(storage).or_else(container);
                about.map_or_else(|| kind.to_owned(), |about| format!("{about}-{kind}"))
            }
        }
    }

    /// Returns the kind alone, such as `relation-joined`.
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
            Self::PebbleReady { .. } => "pebble-ready",
            Self::PebbleCustomNotice { .. } => "pebble-custom-notice",
            Self::PebbleCheckFailed { .. } => "pebble-check-failed",
            Self::PebbleCheckRecovered { .. } => "pebble-check-recovered",
        }
    }

    /// Returns the container whose workload the event is about.
    pub fn container(&self) -> Option<&ContainerName> {
        match self {
            Self::PebbleReady { container } => Some(container),
            _ => self.notice().map(|workload| &workload.container),
        }
    }

    /// Returns the origin of an event about a workload's notice.
    pub fn notice(&self) -> Option<&NoticeContext> {
        match self {
            Self::PebbleCustomNotice { workload, .. }
            | Self::PebbleCheckFailed { workload, .. }
            | Self::PebbleCheckRecovered { workload, .. } => Some(workload),
            _ => None,
        }
    }

    /// Returns the event's relation.
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

    /// Returns the event's storage.
    pub fn storage(&self) -> Option<&StorageContext> {
        match self {
            Self::StorageAttached(storage) | Self::StorageDetaching(storage) => Some(storage),
            _ => None,
        }
    }

    /// Returns the event's remote unit.
    pub fn remote_unit(&self) -> Option<&UnitName> {
        match self {
            Self::RelationJoined { remote_unit, .. } | Self::RelationDeparted { remote_unit, .. } => {
                Some(remote_unit)
            }
            Self::RelationChanged { remote_unit, .. } => remote_unit.as_ref(),
            _ => None,
        }
    }

    /// Returns the task of an action.
    pub fn task(&self) -> Option<TaskId> {
        match self {
            Self::Action { task, .. } => Some(*task),
            _ => None,
        }
    }

    /// Returns the number of a custom event.
    pub fn custom(&self) -> Option<EventId> {
        match self {
            Self::Custom { id, .. } => Some(*id),
            _ => None,
        }
    }

    /// Returns the event's secret.
    pub fn secret(&self) -> Option<&SecretContext> {
        match self {
            Self::SecretChanged(secret) | Self::SecretRotate(secret) => Some(secret),
            Self::SecretExpired { secret, .. } | Self::SecretRemove { secret, .. } => Some(secret),
            _ => None,
        }
    }

    /// Returns the secret's revision, in expired and remove hooks.
    pub fn secret_revision(&self) -> Option<SecretRevision> {
        match self {
            Self::SecretExpired { revision, .. } | Self::SecretRemove { revision, .. } => Some(*revision),
            _ => None,
        }
    }

    /// Returns the unit that leaves, in a departed hook or a batch.
    pub fn departing_unit(&self) -> Option<&UnitName> {
        match self {
            Self::RelationDeparted { departing_unit, .. } => Some(departing_unit),
            Self::RelationBatch { batch, .. } => batch.departing_unit.as_ref(),
            _ => None,
        }
    }

    /// Returns the changes of a batch.
    pub fn batch(&self) -> Option<&RelationBatch> {
        match self {
            Self::RelationBatch { batch, .. } => Some(batch),
            _ => None,
        }
    }

    /// Returns true if this event is another attempt of `other`. A batch that is tried again holds all changes up to
    /// the new attempt.
    pub fn is_attempt_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::RelationBatch { relation, .. }, Self::RelationBatch { relation: others, .. }) => {
                relation == others
            }
            _ => self == other,
        }
    }
}

/// The kinds whose hook names have no prefix.
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

/// The endings of all other hook names. Before the ending comes the name of an endpoint, a storage or a container.
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

/// Returns true if a hook has this name, or could have it (`docs/hook-model.md` 4.1).
pub(crate) fn is_hook_name(name: &str) -> bool {
    PLAIN.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Writes the full hook name.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.hook_name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_list_of_kinds_has_each_kind_of_event() {
        let schema = schemars::schema_for!(Event).to_value();
        let forms = schema["oneOf"].as_array().unwrap();
        let mut kinds = BTreeSet::new();
        for form in forms {
            let named = form["enum"].as_array().into_iter().flatten().chain(form.get("const"));
            kinds.extend(named.map(|name| name.as_str().unwrap().to_owned()));
            kinds.extend(form["properties"].as_object().into_iter().flat_map(|named| named.keys().cloned()));
        }
        assert_eq!(kinds, EVENT_KINDS.into_iter().map(str::to_owned).collect());
        assert_eq!(kinds.len(), EVENT_KINDS.len());
    }
}
