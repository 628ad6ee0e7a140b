//! Secrets in a view: what the units of a runner may know of them. Content is never part of it.

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
    /// Its id.
    pub id: SecretId,
    /// Whose it is.
    pub owner: SecretOwner,
    /// The latest revision; for a runner none of whose units may read it any more, 0.
    pub latest: SecretRevision,
    /// Own units, and own applications, to which it is granted.
    pub readers: BTreeSet<SecretReader>,
    /// What own units track.
    pub consumers: BTreeMap<UnitName, SecretConsumerView>,
    /// What only the owner knows; none for everybody else.
    pub owned: Option<OwnedSecretView>,
}

impl SecretView {
    /// Whether a unit may read it: as its owner, as a unit of the owning application, or by a grant (S-7).
    pub fn is_readable_by(&self, unit: &UnitName) -> bool {
        self.is_owned_by(unit) || self.readers.iter().any(|reader| reader.includes(unit))
    }

    /// Whether it is a unit's own, or its application's.
    pub fn is_owned_by(&self, unit: &UnitName) -> bool {
        match &self.owner {
            SecretOwner::Unit(owner) => owner == unit,
            SecretOwner::Application(owner) => owner == unit.application(),
            SecretOwner::Model => false,
        }
    }

    /// What the owner knows of it, if a unit is one.
    pub fn as_owned_by(&self, unit: &UnitName) -> Option<&OwnedSecretView> {
        self.owned.as_ref().filter(|_| self.is_owned_by(unit))
    }
}

/// What the owner of a secret knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OwnedSecretView {
    /// The owner's label.
    pub label: Option<String>,
    /// For people.
    pub description: String,
    /// How often it is to be rotated.
    pub rotate: RotatePolicy,
    /// When rotation is due next.
    pub next_rotate: Option<Timestamp>,
    /// Whether it is due, and the owner is to be told.
    pub rotate_due: bool,
    /// Revisions that are there.
    pub revisions: BTreeMap<SecretRevision, OwnedRevisionView>,
    /// Who may read it, and through which relation; none: not through one.
    pub access: BTreeMap<SecretReader, Option<RelationId>>,
}

/// One revision, as its owner knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OwnedRevisionView {
    /// When it expires.
    pub expire: Option<Timestamp>,
    /// Whether it has, and the owner is to be told.
    pub expire_due: bool,
    /// Whether nobody tracks it, and it is not the latest (S-8).
    pub obsolete: bool,
}

/// What one unit reads of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SecretConsumerView {
    /// The revision that it reads until it refreshes (S-1).
    pub tracked: SecretRevision,
    /// The unit's own label for it (S-5).
    pub label: Option<String>,
}
