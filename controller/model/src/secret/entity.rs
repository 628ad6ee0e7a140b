//! The entities of secrets: their metadata, sealed content, and the revisions that units track.

use std::collections::BTreeMap;

use periapt_host_api::{
    RelationId, Timestamp, UnitName,
    secret::{RotatePolicy, Sealed, SecretId, SecretOwner, SecretReader, SecretRevision},
};
use serde::{Deserialize, Serialize};

/// The bytes in memory and on disk that one secret, revision or reader counts for, besides its content and texts.
pub(crate) const PART_BYTES: usize = 512;

/// The bytes that one grant counts for.
const GRANT_BYTES: usize = 128;

/// A secret, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Secret {
    /// The secret's id. It is random, and never reused.
    pub id: SecretId,
    /// The owner.
    pub owner: SecretOwner,
    /// The owner's label, unique among the owner's secrets. For secrets of the model's users it is the name.
    pub label: Option<String>,
    /// The description for people.
    pub description: String,
    /// The rotation policy.
    pub rotate: RotatePolicy,
    /// The time of the next rotation.
    pub next_rotate: Option<Timestamp>,
    /// True if the rotation is due, and the owner must be told.
    pub rotate_due: bool,
    /// True if revisions that no unit tracks are deleted automatically.
    pub auto_prune: bool,
    /// The highest existing revision.
    pub latest: SecretRevision,
    /// The highest revision that ever existed.
    pub made: SecretRevision,
    /// The readers besides the owner, with the relation of each grant. A grant by a removed relation has no effect,
    /// because relation numbers are never reused.
    pub access: BTreeMap<SecretReader, Option<RelationId>>,
    /// The time of the creation.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

impl Secret {
    /// Returns the time at which the owner is to be told of rotation, or none while it is being told.
    pub(crate) fn rotates_at(&self) -> Option<Timestamp> {
        self.next_rotate.filter(|_| !self.rotate_due)
    }

    /// Returns the bytes that the secret counts for in the model's limit.
    pub(crate) fn weight(&self) -> usize {
        let texts = self.description.len().saturating_add(self.label.as_ref().map_or(0, String::len));
        PART_BYTES.saturating_add(texts).saturating_add(self.access.len().saturating_mul(GRANT_BYTES))
    }
}

/// One revision's content, with its first expiry. It never changes: later changes of the expiry are in
/// [`SecretExpiry`], so that the content is written only once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretContent {
    /// The secret.
    pub id: SecretId,
    /// The revision.
    pub revision: SecretRevision,
    /// The content, encrypted with the controller's key.
    pub sealed: Sealed,
    /// The time of the expiry.
    pub expire: Option<Timestamp>,
    /// The time at which the owner is told next; none if it was told, or there is no expiry.
    pub tell_at: Option<Timestamp>,
    /// True if that time has come.
    pub expire_due: bool,
    /// The time of the creation.
    pub created_at: Timestamp,
    /// The time of the last change of the expiry.
    pub updated_at: Timestamp,
}

impl SecretContent {
    /// Returns the bytes that the content counts for in the model's limit.
    pub(crate) fn weight(&self) -> usize {
        PART_BYTES.saturating_add(self.sealed.bytes.len())
    }
}

/// The current expiry state of one revision, if it has changed since the creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretExpiry {
    /// The secret.
    pub id: SecretId,
    /// The revision.
    pub revision: SecretRevision,
    /// The time of the expiry.
    pub expire: Option<Timestamp>,
    /// The time at which the owner is told next; none if it was told, or there is no expiry.
    pub tell_at: Option<Timestamp>,
    /// True if that time has come.
    pub expire_due: bool,
    /// The time of the last change of the expiry.
    pub updated_at: Timestamp,
}

impl SecretExpiry {
    /// Returns the first expiry state of a revision.
    pub fn first(content: &SecretContent) -> Self {
        let SecretContent { id, revision, expire, tell_at, expire_due, updated_at, .. } = *content;
        Self { id, revision, expire, tell_at, expire_due, updated_at }
    }
}

/// The revision of a secret that a unit tracks (S-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretConsumer {
    /// The secret.
    pub id: SecretId,
    /// The unit.
    pub unit: UnitName,
    /// The revision that the unit reads until it refreshes.
    pub tracked: SecretRevision,
    /// The unit's own label for the secret (S-5).
    pub label: Option<String>,
}
