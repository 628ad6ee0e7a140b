//! The blobs, and the parts for their uploads.

use std::{sync::Arc, time::Duration};

use periapt_blobs::Blobs;

use super::BlobCollector;
use crate::{bounds::Uploads, check::Checks};

/// The blobs of one kind. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Contents {
    pub(crate) blobs: Blobs,
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
}
