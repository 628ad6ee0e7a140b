//! The index of contents that are parts of others: the layers of images.

use std::sync::Arc;

use periapt_host_api::{Digest, resource::ArchiveParts};

use super::{Root, index::Index};
use crate::entity::ResourceContent;

/// The contents that have a content as a part, by the part's digest.
#[derive(Debug, Clone, Default)]
pub(super) struct PartIndex(Index<Digest, Digest>);

impl PartIndex {
    /// Removes the parts of the old content from the index, and adds those of the new one.
    pub(super) fn update(&mut self, old: Option<&Arc<ResourceContent>>, new: Option<&Arc<ResourceContent>>) {
        let parts = |content: &Arc<ResourceContent>| content.parts.as_ref().map(ArchiveParts::digests);
        if let Some((digests, content)) = old.and_then(|content| Some((parts(content)?, content))) {
            for digest in digests {
                self.0.remove(&digest, &content.digest);
            }
        }
        if let Some((digests, content)) = new.and_then(|content| Some((parts(content)?, content))) {
            for digest in digests {
                self.0.insert(digest, content.digest);
            }
        }
    }
}

impl Root {
    /// Returns true if another content has this one as a part.
    pub fn is_part(&self, content: &Digest) -> bool {
        self.part_index.0.len(content) > 0
    }
}
