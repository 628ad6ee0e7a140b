//! What one hook changes in secrets, in its one commit (`hook-model.md` 3.1, 5.9).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Confidential, RotatePolicy, SecretData, SecretId, SecretOwner, SecretReader, SecretRevision};
use crate::{RelationId, Timestamp};

/// All changes of one hook. They are applied in the order of the fields (C-4).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SecretChanges {
    /// Secrets that are made.
    pub add: BTreeMap<SecretId, NewSecret>,
    /// Secrets that are changed.
    pub update: BTreeMap<SecretId, SecretUpdate>,
    /// What the unit reads from now on.
    pub track: BTreeMap<SecretId, Tracking>,
    /// Who may read, or may no more; the last word for each.
    pub access: BTreeMap<SecretId, BTreeMap<SecretReader, AccessChange>>,
    /// What is removed.
    pub remove: BTreeMap<SecretId, Removal>,
}

impl SecretChanges {
    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// All content in it.
    pub fn contents_mut(&mut self) -> impl Iterator<Item = (SecretId, &mut Confidential<SecretData>)> {
        let added = self.add.iter_mut().map(|(id, new)| (*id, &mut new.content));
        let updated = self.update.iter_mut().filter_map(|(id, update)| Some((*id, update.content.as_mut()?)));
        added.chain(updated)
    }
}

/// A secret to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NewSecret {
    /// Whose.
    pub owner: SecretOwner,
    /// The first revision's content.
    pub content: Confidential<SecretData>,
    /// The owner's label, unique among the owner's secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// How often it is to be rotated.
    #[serde(default)]
    pub rotate: RotatePolicy,
    /// When the first revision expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expire: Option<Timestamp>,
}

/// A change of a secret; what is none stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SecretUpdate {
    /// A new revision, if it differs from the latest.
    pub content: Option<Confidential<SecretData>>,
    /// The owner's label.
    pub label: Option<String>,
    /// For people.
    pub description: Option<String>,
    /// How often it is to be rotated.
    pub rotate: Option<RotatePolicy>,
    /// When the latest revision, the new one if there is one, expires.
    pub expire: Option<Timestamp>,
}

/// Which revision a unit reads (S-1), and by which label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tracking {
    /// From now on this one.
    pub revision: Tracked,
    /// The unit's label for it; none: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// A revision to be tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tracked {
    /// The one that was read.
    Revision(SecretRevision),
    /// The latest after this hook's own changes.
    Latest,
}

/// A change of who may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AccessChange {
    /// Granted as long as the relation is there (S-6).
    Grant(RelationId),
    /// Taken back.
    Revoke,
}

/// What is removed of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Removal {
    /// All of it.
    Secret,
    /// Some revisions; the secret goes with its last.
    Revisions(BTreeSet<SecretRevision>),
}
