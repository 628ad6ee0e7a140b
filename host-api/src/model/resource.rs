//! Resources: files that an operator attaches to an application, as its charm declares them (`docs/hook-model.md` 1.10,
//! 5.2, 6.1). The content is a blob; the model maps revisions to blobs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, ResourceName, Timestamp, UserName};

/// The largest content of a resource, in bytes. A machine-learning model or a disk image fits, and one resource does
/// not fill an agent's disk.
pub const MAX_RESOURCE_BYTES: u64 = 1 << 30;

/// The directory of resources in the sandbox.
pub const RESOURCES: &str = "/resources";

/// Returns the path of a resource's file in the sandbox.
pub fn resource_path(name: &ResourceName, filename: &str) -> String {
    format!("{RESOURCES}/{name}/{filename}")
}

/// Uploaded content for a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceUpload {
    /// The digest of the content.
    pub digest: Digest,
    /// The name of the operator's file, whose extension must be that of the declared file. `None` means unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
}

/// One revision of a resource of an application.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceRevision {
    /// The revision's number; rises by one with each new content, from 1.
    pub revision: u64,
    /// The digest of the content.
    pub digest: Digest,
    /// The size of the content, in bytes.
    pub size: u64,
    /// The time of the attachment.
    pub attached_at: Timestamp,
    /// The user who attached the content.
    pub attached_by: UserName,
}

/// The key of the content that an agent fetches for a hook, from the hook's snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceKey {
    /// The resource.
    pub name: ResourceName,
    /// The digest of the content.
    pub digest: Digest,
}
