//! The reasons why blobs cannot be stored or read.

use std::{ops::Range, sync::Arc};

use periapt_host_api::Digest;

use crate::s3::S3Failure;

/// The reason why a blob cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The directory cannot be used.
    #[error("the blob directory {directory} cannot be used: {source}")]
    Directory {
        /// The directory.
        directory: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The content does not have the expected digest.
    #[error("the content has digest {actual}, not {expected}")]
    WrongDigest {
        /// The expected digest.
        expected: Digest,
        /// The digest of the content.
        actual: Digest,
    },
    /// The range is outside the blob.
    #[error("a blob of {size} bytes has no range {}-{}", range.start, range.end)]
    NoSuchRange {
        /// The requested range.
        range: Range<u64>,
        /// The blob's size, in bytes.
        size: u64,
    },
    /// The temporary file of an upload cannot be created, written or read.
    #[error("cannot store the upload: {0}")]
    Spool(#[source] std::io::Error),
    /// The local directory failed.
    #[error("the blob store failed: {0}")]
    Store(#[source] object_store::Error),
    /// The object store that the controllers share failed, or cannot be used.
    #[error("the blobs in {place} cannot be used: {failure}")]
    Shared {
        /// The place of the blobs.
        place: String,
        /// The reason.
        failure: S3Failure,
    },
    /// An object of the shared store has other bytes than its name says.
    #[error("blob {digest} is damaged in {place}: its bytes have another digest; upload it again")]
    Damaged {
        /// The name.
        digest: Digest,
        /// The place of the blobs.
        place: String,
    },
    /// A blob that others name does not exist.
    #[error("blob {digest} is missing: upload it again")]
    Missing {
        /// The blob.
        digest: Digest,
    },
    /// The place holds the blobs of another controller.
    #[error(
        "{place} holds the blobs of the store {found}, and this is {own}: choose another prefix; if that controller is \
         gone for good, delete the object {object}"
    )]
    OtherStore {
        /// The place.
        place: String,
        /// The store whose blobs are there.
        found: String,
        /// The own store.
        own: String,
        /// The name of the object that says so.
        object: String,
    },
}

/// The maker of errors for one place. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Failures(pub(crate) Option<Arc<str>>);

impl Failures {
    /// Returns the error of a call of the store.
    pub(crate) fn of(&self, error: object_store::Error) -> BlobError {
        match &self.0 {
            None => BlobError::Store(error),
            Some(place) => BlobError::Shared { place: place.to_string(), failure: S3Failure::of(&error) },
        }
    }
}
