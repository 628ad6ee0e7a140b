//! Charms.

use periapt_host_api::{Digest, Timestamp, charm::CharmMeta};
use serde::{Deserialize, Serialize};

/// An uploaded charm: checked, and kept as a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Charm {
    /// The archive's digest.
    pub digest: Digest,
    /// The component's digest, inside the archive.
    pub component: Digest,
    /// What it declares.
    pub meta: CharmMeta,
    /// Bytes of the archive.
    pub size: u64,
    /// When it was uploaded first.
    pub uploaded_at: Timestamp,
}

/// A charm that a model uses (M-13, M-15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelCharm {
    /// The archive's digest.
    pub digest: Digest,
    /// Its revision among the model's charms of this name; never reused.
    pub revision: u64,
}
