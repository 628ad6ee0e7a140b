//! The charm entities.

use periapt_host_api::{Digest, Timestamp, charm::CharmMeta};
use serde::{Deserialize, Serialize};

use crate::user::uploaders::Uploaders;

/// An uploaded charm. It was checked, and its archive is stored as a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Charm {
    /// The archive's digest.
    pub digest: Digest,
    /// The component's digest, inside the archive.
    pub component: Digest,
    /// The metadata that the charm declares.
    pub meta: CharmMeta,
    /// The size of the archive, in bytes.
    pub size: u64,
    /// The time of its first upload.
    pub uploaded_at: Timestamp,
    /// The users who uploaded it.
    #[serde(default, skip_serializing_if = "Uploaders::is_empty")]
    pub uploaders: Uploaders,
}

/// A charm that a model uses, or keeps because an application had it before (M-13, M-15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelCharm {
    /// The archive's digest.
    pub digest: Digest,
    /// The charm's revision among the model's charms of this name. It is never reused.
    pub revision: u64,
}
