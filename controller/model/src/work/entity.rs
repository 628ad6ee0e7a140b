//! Work items: work that is too much for one commit, or not yet due.

use std::fmt;

use periapt_host_api::{
    ApplicationName, MachineId, RelationId, StorageId, Timestamp, UnitName,
    command::{Force, Placement},
    secret::{SecretId, SecretReader},
    storage::UnitStorage,
};
use serde::{Deserialize, Serialize};

/// A work item's number in its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkId(pub u64);

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A work item. Each step of it is idempotent; the last step deletes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkItem {
    /// The item's number.
    pub id: WorkId,
    /// The earliest time for it; none means at once.
    pub due: Option<Timestamp>,
    /// The work.
    pub work: Work,
}

/// The kinds of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Creates units whose numbers are already handed out.
    CreateUnits {
        /// The application of the units.
        application: ApplicationName,
        /// The next number.
        next: u32,
        /// One past the last number.
        end: u32,
        /// The placement of the next units, in order.
        placement: Vec<Placement>,
    },
    /// Destroys the relations and units of a dying application (L-2, R-10).
    DestroyApplication {
        /// The application.
        application: ApplicationName,
        /// The force for the units, if any.
        force: Option<Force>,
        /// The treatment of the units' storage.
        #[serde(default)]
        storage: UnitStorage,
        /// The unit after which the work goes on, because those before are being destroyed; none means all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<UnitName>,
    },
    /// Destroys the units on a machine that is removed by force.
    DestroyUnitsOn {
        /// The machine.
        machine: MachineId,
        /// The force for the units.
        force: Force,
        /// The unit after which the work goes on, because those before are being destroyed; none means all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<UnitName>,
    },
    /// Destroys some units.
    DestroyUnits {
        /// The units.
        units: Vec<UnitName>,
        /// The force for the units, if any.
        force: Option<Force>,
        /// The treatment of the units' storage.
        #[serde(default)]
        storage: UnitStorage,
    },
    /// Destroys the subordinate units of an application that no alive relation ties to their principal.
    DestroySubordinates {
        /// The subordinate application.
        application: ApplicationName,
    },
    /// Marks the memberships of a dying unit as departing, or removes a dead unit with its memberships and
    /// stored state.
    UnitScopes {
        /// The unit.
        unit: UnitName,
    },
    /// Ends the tasks of a removed unit.
    CancelTasks {
        /// The unit.
        unit: UnitName,
    },
    /// Removes a unit without its agent.
    ForceUnit {
        /// The unit.
        unit: UnitName,
    },
    /// Takes the units of a dying relation out of its scope and removes it.
    ForceRelation {
        /// The relation.
        relation: RelationId,
    },
    /// Destroys some relations.
    DestroyRelations {
        /// The relations.
        relations: Vec<RelationId>,
        /// The force for the relations, if any.
        force: Option<Force>,
    },
    /// Detaches storage without waiting for its unit, or removes it without waiting for its agent.
    ForceStorage {
        /// The storage instance.
        storage: StorageId,
        /// The count of detachments at which the forced detachment applies; none means a forced removal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detachment: Option<u32>,
    },
    /// Creates the storage that a refreshed application's charm newly requires.
    ProvideStorage {
        /// The application.
        application: ApplicationName,
    },
    /// Removes all units of a dying model without their agents.
    ForceModel,
    /// Removes the secrets of a removed owner, or the leftovers of removed secrets.
    RemoveSecrets {
        /// The secrets.
        secrets: Vec<SecretId>,
    },
    /// Deletes the revisions that no unit tracks, of secrets with automatic pruning.
    PruneSecrets {
        /// The secrets.
        secrets: Vec<SecretId>,
    },
    /// Deletes the grants and tracked revisions of a removed reader.
    ForgetSecretReader {
        /// The reader.
        reader: SecretReader,
        /// The secrets, as noted by an earlier version; empty means all.
        secrets: Vec<SecretId>,
    },
    /// Deletes the bags of a removed relation.
    RemoveBags {
        /// The relation.
        relation: RelationId,
    },
}

impl Work {
    /// Returns the application and the number of the units that it is to create, if it creates some.
    pub(crate) fn coming_units(&self) -> Option<(ApplicationName, u64)> {
        match self {
            Self::CreateUnits { application, next, end, .. } => {
                Some((application.clone(), u64::from(end.saturating_sub(*next))))
            }
            _ => None,
        }
    }
}
