//! Resources: files that an operator attaches to an application, as its charm declares them (`hook-model.md` 1.10,
//! 5.2, 6.1). Content is a blob by its digest; the model keeps which blob is which revision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, ResourceName, Timestamp, UserName};

/// The largest content of a resource that is taken, in bytes: a model or a disk image fits, and a disk of an agent
/// is not filled by one of them.
pub const MAX_RESOURCE_BYTES: u64 = 1 << 30;

/// Where hooks find resources.
pub const RESOURCES: &str = "/resources";

/// Where hooks find the file of a resource.
pub fn resource_path(name: &ResourceName, filename: &str) -> String {
    format!("{RESOURCES}/{name}/{filename}")
}

/// Content that was uploaded, and is to become a resource's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUpload {
    /// The content.
    pub digest: Digest,
    /// What the operator's file is called: it must have the extension that the charm declares. None: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

/// One revision of a resource of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceRevision {
    /// Rises by one with each new content, from 1.
    pub revision: u64,
    /// The content.
    pub digest: Digest,
    /// Bytes of the content.
    pub size: u64,
    /// When it was attached.
    pub attached_at: Timestamp,
    /// By whom.
    pub attached_by: UserName,
}

/// What is fetched for a hook: the content that its snapshot shows of a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceKey {
    /// Which resource.
    pub name: ResourceName,
    /// Which content.
    pub digest: Digest,
}
