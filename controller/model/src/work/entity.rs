//! What the controller has still to do: too much for one commit, or not yet due.

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

/// One thing to do. Each step of it is idempotent; the item goes with the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkItem {
    /// Its number.
    pub id: WorkId,
    /// Not before; none: at once.
    pub due: Option<Timestamp>,
    /// What.
    pub work: Work,
}

/// Kinds of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Make units whose numbers are already handed out.
    CreateUnits {
        /// Of which application.
        application: ApplicationName,
        /// The next number.
        next: u32,
        /// One past the last number.
        end: u32,
        /// Where the next ones go, in order.
        placement: Vec<Placement>,
    },
    /// Destroy the relations and units of a dying application (L-2, R-10).
    DestroyApplication {
        /// Which.
        application: ApplicationName,
        /// How its units are forced.
        force: Option<Force>,
        /// What becomes of its units' storage.
        #[serde(default)]
        storage: UnitStorage,
        /// Only units behind this one, for the others are on their way; none: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<UnitName>,
    },
    /// Destroy the units on a machine that is removed by force.
    DestroyUnitsOn {
        /// Which.
        machine: MachineId,
        /// How they are forced.
        force: Force,
        /// Only units behind this one, for the others are on their way; none: all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<UnitName>,
    },
    /// Destroy some units.
    DestroyUnits {
        /// Which.
        units: Vec<UnitName>,
        /// How they are forced.
        force: Option<Force>,
        /// What becomes of their storage.
        #[serde(default)]
        storage: UnitStorage,
    },
    /// Destroy the subordinate units of an application that no alive relation ties to their principal.
    DestroySubordinates {
        /// The subordinate application.
        application: ApplicationName,
    },
    /// Mark a dying unit's scopes, or take a dead unit out of them and remove it with what it stored.
    UnitScopes {
        /// Which.
        unit: UnitName,
    },
    /// End the tasks of a unit that is gone.
    CancelTasks {
        /// Which.
        unit: UnitName,
    },
    /// Remove a unit without its agent.
    ForceUnit {
        /// Which.
        unit: UnitName,
    },
    /// Take the units of a dying relation out of its scope and remove it.
    ForceRelation {
        /// Which.
        relation: RelationId,
    },
    /// Destroy some relations.
    DestroyRelations {
        /// Which.
        relations: Vec<RelationId>,
        /// How their units are forced.
        force: Option<Force>,
    },
    /// Take storage from its unit without asking it, and remove it if that is wanted.
    ForceStorage {
        /// Which.
        storage: StorageId,
        /// Only if units have let it go so often, and not to remove it; none: a removal is forced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detachment: Option<u32>,
    },
    /// Give the units of a refreshed application the storage that its charm newly demands.
    ProvideStorage {
        /// Which.
        application: ApplicationName,
    },
    /// Remove all units of a dying model without their agents.
    ForceModel,
    /// Remove secrets whose owner is gone, or what is left of removed ones.
    RemoveSecrets {
        /// Which.
        secrets: Vec<SecretId>,
    },
    /// Take away revisions that nobody tracks of secrets whose revisions are to go by themselves.
    PruneSecrets {
        /// Which.
        secrets: Vec<SecretId>,
    },
    /// Take the grants and the tracked revisions of a reader that is gone.
    ForgetSecretReader {
        /// Who.
        reader: SecretReader,
        /// Of which secrets, as an earlier version noted them; none: of all.
        secrets: Vec<SecretId>,
    },
    /// Remove the bags of a relation that is gone.
    RemoveBags {
        /// Which.
        relation: RelationId,
    },
}
