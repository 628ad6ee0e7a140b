//! The changes of secrets in one hook's commit (`docs/hook-model.md` 3.1, 5.9).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Confidential, RotatePolicy, SecretData, SecretId, SecretOwner, SecretReader, SecretRevision};
use crate::{RelationId, Timestamp};

/// All changes of secrets by one hook. The controller applies them in the order of the fields (C-4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SecretChanges {
    /// New secrets.
    pub add: BTreeMap<SecretId, NewSecret>,
    /// Updates of secrets.
    pub update: BTreeMap<SecretId, SecretUpdate>,
    /// The revisions that the unit tracks from now on.
    pub track: BTreeMap<SecretId, Tracking>,
    /// Grants and revocations; the last call for each reader counts.
    pub access: BTreeMap<SecretId, BTreeMap<SecretReader, AccessChange>>,
    /// Removals.
    pub remove: BTreeMap<SecretId, Removal>,
}

impl SecretChanges {
    /// Returns true if there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns all content in the changes.
    pub fn contents_mut(&mut self) -> impl Iterator<Item = (SecretId, &mut Confidential<SecretData>)> {
        let added = self.add.iter_mut().map(|(id, new)| (*id, &mut new.content));
        let updated = self.update.iter_mut().filter_map(|(id, update)| Some((*id, update.content.as_mut()?)));
        added.chain(updated)
    }
}

/// A new secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NewSecret {
    /// The owner.
    pub owner: SecretOwner,
    /// The first revision's content.
    pub content: Confidential<SecretData>,
    /// The owner's label, unique among the owner's secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// A description for people.
    #[serde(default)]
    pub description: String,
    /// The rotation policy.
    #[serde(default)]
    pub rotate: RotatePolicy,
    /// The expiry time of the first revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<Timestamp>,
}

/// An update of a secret. Fields that are `None` stay unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SecretUpdate {
    /// The content of a new revision. It is ignored if it equals the latest content.
    pub content: Option<Confidential<SecretData>>,
    /// The owner's label.
    pub label: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// The rotation policy.
    pub rotate: Option<RotatePolicy>,
    /// The expiry time of the latest revision, or of the new one if there is one.
    pub expire: Option<Timestamp>,
}

/// The revision that a unit tracks (S-1), and its label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tracking {
    /// The tracked revision.
    pub revision: Tracked,
    /// The unit's label for the secret. `None` leaves the label unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A revision to be tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tracked {
    /// The revision that the hook read.
    Revision(SecretRevision),
    /// The latest revision after this hook's own changes.
    Latest,
}

/// A change of read access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessChange {
    /// Grants access for the life of the relation (S-6).
    Grant(RelationId),
    /// Revokes access.
    Revoke,
}

/// A removal of a secret or of revisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// The whole secret.
    Secret,
    /// Some revisions. The secret is removed with its last revision.
    Revisions(BTreeSet<SecretRevision>),
}
