//! The resource entities: attachments and content.

use periapt_host_api::{
    Digest, Timestamp,
    resource::{ArchiveParts, CheckedImage, ResourceRevision},
};
use serde::{Deserialize, Serialize};

use crate::user::uploaders::Uploaders;

/// Uploaded content of resources, stored as a blob, or in parts that are contents themselves. The applications refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceContent {
    /// The content's digest.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The time of its first upload.
    pub uploaded_at: Timestamp,
    /// The users who uploaded it.
    #[serde(default, skip_serializing_if = "Uploaders::is_empty")]
    pub uploaders: Uploaders,
    /// The image in it, if it was uploaded as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<CheckedImage>,
    /// The contents that make its bytes together. Without them it is a blob of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<ArchiveParts>,
}

/// A resource of an application that has content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttachedResource {
    /// The content.
    pub current: ResourceRevision,
    /// The charm's modified version that came with the content. A unit at this version or a later one knows of it.
    pub version: u64,
    /// The former contents, the newest last. Hooks that are running may have one of them in their snapshots, containers
    /// may run on one, and an operator may go back to one. Only the last few stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<FormerContent>,
}

/// A former content of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FormerContent {
    /// The content.
    pub content: ResourceRevision,
    /// The charm's modified version that came with the content.
    pub version: u64,
}

impl AttachedResource {
    /// Returns a resource with its first content.
    pub fn first(current: ResourceRevision, version: u64) -> Self {
        Self { current, version, former: Vec::new() }
    }

    /// Returns true if the resource has this content, or had it recently.
    pub fn knows(&self, digest: &Digest) -> bool {
        self.current.digest == *digest || self.former.iter().any(|former| former.content.digest == *digest)
    }

    /// Returns the digests of all contents that are kept.
    pub(crate) fn contents(&self) -> impl Iterator<Item = Digest> {
        let former = self.former.iter().map(|former| former.content.digest);
        former.chain([self.current.digest])
    }

    /// Returns the newest content at a charm's modified version.
    pub fn as_of(&self, version: u64) -> Option<&ResourceRevision> {
        if self.version <= version {
            return Some(&self.current);
        }
        let former = self.former.iter().rev().find(|former| former.version <= version);
        former.map(|former| &former.content)
    }
}
