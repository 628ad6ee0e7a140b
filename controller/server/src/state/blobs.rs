//! What is kept as blobs, and how it is taken from clients.

use std::{sync::Arc, time::Duration};

use periapt_blobs::Blobs;

use super::BlobCollector;
use crate::{bounds::Uploads, check::Checks};

/// Blobs of one kind. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Contents {
    pub(crate) blobs: Blobs,
    /// Which of them somebody has asked for or may throw away.
    pub(crate) collector: BlobCollector,
    /// How many are taken at a time.
    pub(crate) uploads: Uploads,
    /// An upload that makes no progress for this long is ended.
    pub(crate) progress_within: Duration,
}

/// Charms' archives.
#[derive(Clone)]
pub(crate) struct Charms {
    pub(crate) contents: Contents,
    /// Reads what was uploaded, in a process of its own.
    pub(crate) checks: Arc<Checks>,
}

/// Content of resources.
#[derive(Clone)]
pub(crate) struct Resources {
    pub(crate) contents: Contents,
}
