//! Resources of applications, and their content.

use periapt_host_api::{Digest, Timestamp, resource::ResourceRevision};
use serde::{Deserialize, Serialize};

/// Content that was uploaded for resources, and is kept as a blob. Which resources have it, their applications say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ResourceContent {
    /// Its digest.
    pub digest: Digest,
    /// In bytes.
    pub size: u64,
    /// When it was uploaded first.
    pub uploaded_at: Timestamp,
}

/// A resource of an application that has content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AttachedResource {
    /// The content.
    pub current: ResourceRevision,
    /// The charm's modified version that the content came with: a unit that runs this version was told of it.
    pub version: u64,
    /// What it had before, the newest last: hooks that are under way have one of them in their snapshots. Only the
    /// last few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<FormerContent>,
}

/// What a resource had before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FormerContent {
    /// The content.
    pub content: ResourceRevision,
    /// The charm's modified version that it came with.
    pub version: u64,
}

impl AttachedResource {
    /// A resource's first content.
    pub fn first(current: ResourceRevision, version: u64) -> Self {
        Self { current, version, former: Vec::new() }
    }

    /// Whether it has a content now, or had it not long ago.
    pub fn knows(&self, digest: &Digest) -> bool {
        self.current.digest == *digest || self.former.iter().any(|former| former.content.digest == *digest)
    }

    /// The newest revision that a charm's modified version came with or after.
    pub fn as_of(&self, version: u64) -> Option<&ResourceRevision> {
        if self.version <= version {
            return Some(&self.current);
        }
        let former = self.former.iter().rev().find(|former| former.version <= version);
        former.map(|former| &former.content)
    }
}
