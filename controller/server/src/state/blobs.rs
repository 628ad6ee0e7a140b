//! The blobs, and the parts for their uploads.

mod copies;
mod stored;

use std::{sync::Arc, time::Duration};

use periapt_blobs::Blobs;
use periapt_host_api::{Digest, api::MAX_ARCHIVE_BYTES, resource::MAX_RESOURCE_BYTES};
use periapt_model::Root;

pub(crate) use self::{
    copies::{Copies, Kept},
    stored::StoredContent,
};
use super::BlobCollector;
use crate::{bounds::Uploads, check::Checks};

/// The kind of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BlobKind {
    /// A charm's archive.
    Charm,
    /// A resource's content.
    Resource,
}

impl BlobKind {
    /// All kinds.
    pub(crate) const ALL: [Self; 2] = [Self::Charm, Self::Resource];

    /// Returns the word for it, in messages and paths.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Charm => "charm",
            Self::Resource => "resource",
        }
    }

    /// Returns the blobs of this kind, of those of a controller.
    pub(crate) fn among(self, blobs: &Blobs) -> Blobs {
        match self {
            Self::Charm => blobs.clone(),
            Self::Resource => blobs.namespace("resources"),
        }
    }

    /// Returns the size of the largest one, in bytes.
    pub(crate) fn limit(self) -> u64 {
        match self {
            Self::Charm => MAX_ARCHIVE_BYTES,
            Self::Resource => MAX_RESOURCE_BYTES,
        }
    }

    /// Returns true if a content is registered, as a blob or in parts.
    pub(crate) fn is_known(self, root: &Root, digest: &Digest) -> bool {
        match self {
            Self::Charm => root.charm(digest).is_some(),
            Self::Resource => root.resource_content(digest).is_some(),
        }
    }

    /// Returns true if a blob is registered.
    pub(crate) fn is_blob(self, root: &Root, digest: &Digest) -> bool {
        match self {
            Self::Charm => root.charm(digest).is_some(),
            Self::Resource => root.resource_content(digest).is_some_and(|known| known.parts.is_none()),
        }
    }

    /// Returns the registered blobs. A content in parts is none; its parts are.
    pub(crate) fn known(self, root: &Root) -> Box<dyn Iterator<Item = Digest> + '_> {
        match self {
            Self::Charm => Box::new(root.charms().map(|charm| charm.digest)),
            Self::Resource => {
                let blobs = root.resource_contents().filter(|content| content.parts.is_none());
                Box::new(blobs.map(|content| content.digest))
            }
        }
    }
}

/// The blobs of one kind. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Contents {
    pub(crate) kind: BlobKind,
    pub(crate) blobs: Blobs,
    /// The copies that other controllers of the same log have.
    pub(crate) copies: Copies,
    /// The collector, whose notes decide on the deletion of blobs.
    pub(crate) collector: BlobCollector,
    /// The bounds on running uploads.
    pub(crate) uploads: Uploads,
    /// The time after which an upload without progress is ended.
    pub(crate) progress_within: Duration,
}

/// The archives of charms.
#[derive(Clone)]
pub(crate) struct Charms {
    pub(crate) contents: Contents,
    /// The checks of uploaded archives, in a helper process.
    pub(crate) checks: Arc<Checks>,
}

/// The content of resources.
#[derive(Clone)]
pub(crate) struct Resources {
    pub(crate) contents: Contents,
    /// The checks of uploaded images, in a helper process.
    pub(crate) checks: Arc<Checks>,
}
