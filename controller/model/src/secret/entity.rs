//! Secrets: what is known of them, their sealed content, and who tracks which revision.

use std::collections::BTreeMap;

use periapt_host_api::{
    RelationId, Timestamp, UnitName,
    secret::{RotatePolicy, Sealed, SecretId, SecretOwner, SecretReader, SecretRevision},
};
use serde::{Deserialize, Serialize};

/// What one secret, revision or reader is charged in memory and on the disk beside its content and texts, in bytes.
pub(crate) const PART_BYTES: usize = 512;

/// What one grant is charged.
const GRANT_BYTES: usize = 128;

/// A secret, without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Secret {
    /// Its id; random, and never reused.
    pub id: SecretId,
    /// Whose it is.
    pub owner: SecretOwner,
    /// The owner's label, unique among the owner's secrets; of the model's own, the name.
    pub label: Option<String>,
    /// For people.
    pub description: String,
    /// How often it is to be rotated.
    pub rotate: RotatePolicy,
    /// When rotation is due next.
    pub next_rotate: Option<Timestamp>,
    /// Whether that time has come, and the owner is to be told.
    pub rotate_due: bool,
    /// Whether revisions that nobody tracks go by themselves.
    pub auto_prune: bool,
    /// The highest revision that is there.
    pub latest: SecretRevision,
    /// The highest revision that was ever there.
    pub made: SecretRevision,
    /// Who may read it beside the owner, and by which relation. A grant by a relation that is gone counts for
    /// nothing: its number never comes again.
    pub access: BTreeMap<SecretReader, Option<RelationId>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
}

impl Secret {
    /// When the owner is to be told of rotation; none while it is being told.
    pub(crate) fn rotates_at(&self) -> Option<Timestamp> {
        self.next_rotate.filter(|_| !self.rotate_due)
    }

    /// What it counts for in what a model may have of secrets, in bytes.
    pub(crate) fn weight(&self) -> usize {
        let texts = self.description.len().saturating_add(self.label.as_ref().map_or(0, String::len));
        PART_BYTES.saturating_add(texts).saturating_add(self.access.len().saturating_mul(GRANT_BYTES))
    }
}

/// One revision's content, and the expiry that it was made with. It never changes: what comes of the expiry is a
/// [`SecretExpiry`], so that nothing that happens to a revision writes its content again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretContent {
    /// The secret.
    pub id: SecretId,
    /// Which revision.
    pub revision: SecretRevision,
    /// The content, under the controller's key.
    pub sealed: Sealed,
    /// When it expires.
    pub expire: Option<Timestamp>,
    /// When the owner is told so next; none: it was told, or there is nothing to tell.
    pub tell_at: Option<Timestamp>,
    /// Whether that time has come.
    pub expire_due: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its expiry changed last.
    pub updated_at: Timestamp,
}

impl SecretContent {
    /// What it counts for in what a model may have of secrets, in bytes.
    pub(crate) fn weight(&self) -> usize {
        PART_BYTES.saturating_add(self.sealed.bytes.len())
    }
}

/// What became of one revision's expiry since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretExpiry {
    /// The secret.
    pub id: SecretId,
    /// Which revision.
    pub revision: SecretRevision,
    /// When it expires.
    pub expire: Option<Timestamp>,
    /// When the owner is told so next; none: it was told, or there is nothing to tell.
    pub tell_at: Option<Timestamp>,
    /// Whether that time has come.
    pub expire_due: bool,
    /// When the expiry was set last.
    pub updated_at: Timestamp,
}

impl SecretExpiry {
    /// The expiry that a revision was made with.
    pub fn first(content: &SecretContent) -> Self {
        let SecretContent { id, revision, expire, tell_at, expire_due, updated_at, .. } = *content;
        Self { id, revision, expire, tell_at, expire_due, updated_at }
    }
}

/// What a unit tracks of a secret (S-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretConsumer {
    /// The secret.
    pub id: SecretId,
    /// The unit.
    pub unit: UnitName,
    /// The revision that it reads until it refreshes.
    pub tracked: SecretRevision,
    /// Its own label for the secret (S-5).
    pub label: Option<String>,
}
