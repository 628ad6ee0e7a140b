//! The secrets that the units of a runner may know of. Views never include content.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    RelationId, Timestamp, UnitName,
    secret::{RotatePolicy, SecretId, SecretOwner, SecretReader, SecretRevision},
};

/// A secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretView {
    /// The secret's id.
    pub id: SecretId,
    /// The secret's owner.
    pub owner: SecretOwner,
    /// The latest revision; 0 if none of the runner's units may read the secret any more.
    pub latest: SecretRevision,
    /// The runner's units and their applications that have a grant.
    pub readers: BTreeSet<SecretReader>,
    /// The consumers among the runner's units.
    pub consumers: BTreeMap<UnitName, SecretConsumerView>,
    /// The owner's knowledge of the secret; none unless one of the runner's units is an owner.
    pub owned: Option<OwnedSecretView>,
}

impl SecretView {
    /// Returns true if a unit may read the secret: as its owner, as a unit of the owning application, or by a grant
    /// (S-7).
    pub fn is_readable_by(&self, unit: &UnitName) -> bool {
        self.is_owned_by(unit) || self.readers.iter().any(|reader| reader.includes(unit))
    }

    /// Returns true if a unit or its application owns the secret.
    pub fn is_owned_by(&self, unit: &UnitName) -> bool {
        match &self.owner {
            SecretOwner::Unit(owner) => owner == unit,
            SecretOwner::Application(owner) => owner == unit.application(),
            SecretOwner::Model => false,
        }
    }

    /// Returns the owner's knowledge of the secret, if the unit is an owner.
    pub fn as_owned_by(&self, unit: &UnitName) -> Option<&OwnedSecretView> {
        self.owned.as_ref().filter(|_| self.is_owned_by(unit))
    }
}

/// The knowledge of a secret's owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OwnedSecretView {
    /// The owner's label.
    pub label: Option<String>,
    /// The description, for people.
    pub description: String,
    /// The rotation policy.
    pub rotate: RotatePolicy,
    /// The time of the next rotation.
    pub next_rotate: Option<Timestamp>,
    /// True if rotation is due and the owner must learn so.
    pub rotate_due: bool,
    /// The revisions that exist.
    pub revisions: BTreeMap<SecretRevision, OwnedRevisionView>,
    /// The readers, each with the relation that its grant is tied to, if any.
    pub access: BTreeMap<SecretReader, Option<RelationId>>,
}

/// One revision, as the owner knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OwnedRevisionView {
    /// The time when the revision expires.
    pub expire: Option<Timestamp>,
    /// True if the revision has expired and the owner must learn so.
    pub expire_due: bool,
    /// True if the revision is not the latest and no consumer tracks it (S-8).
    pub obsolete: bool,
}

/// A unit's consumption of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretConsumerView {
    /// The revision that the unit reads until it refreshes (S-1).
    pub tracked: SecretRevision,
    /// The unit's label for the secret (S-5).
    pub label: Option<String>,
}
