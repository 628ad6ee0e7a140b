//! The reasons why a controller does not start, or cannot go on.

use std::{net::SocketAddr, path::PathBuf};

use periapt_blobs::BlobError;
use periapt_host_api::{Digest, Level, Refusal, StoreId};
use periapt_log::EntryError;
use periapt_store::StoreError;
use periapt_transport::CertificateError;

use crate::listen::GivenFileError;

/// An error that prevents the start of a controller.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The store could not be opened or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory of blobs cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
    /// The controller's blobs are in an object store, and none is given.
    #[error("the blobs of this controller are in {0}: start it with --blobs, as before")]
    WithoutBlobs(String),
    /// Registered blobs are not in the object store that is given.
    #[error(
        "{count} blobs, such as {first}, are neither in {place} nor in {}: copy all objects of the place where they were, \
         or start the controller with that place", .directory.display()
    )]
    MissingBlobs {
        /// The number of missing blobs.
        count: usize,
        /// One of them.
        first: Digest,
        /// The object store.
        place: String,
        /// The local directory of blobs.
        directory: PathBuf,
    },
    /// The key of the store's secrets is missing.
    #[error(
        "{} is missing, and no other key opens the secrets of the store: restore it from a backup; or put 32 random bytes \
         in its place, in a file of mode 600, and set each secret anew",
        .0.display()
    )]
    SealKey(PathBuf),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address, or the path of the socket.
        address: String,
        /// The reason.
        source: std::io::Error,
    },
    /// The address is every address of the host, and no name tells clients one.
    #[error(
        "{0} is every address of this host: --public-name says by which name or address clients reach it"
    )]
    Unnamed(SocketAddr),
    /// The store belongs to another log, or to none.
    #[error(
        "the store {store} is not fed from the log {log} at {place}: use the data directory of this set of controllers, \
         or an empty one"
    )]
    OtherLog {
        /// The store's id.
        store: StoreId,
        /// The log's id.
        log: StoreId,
        /// The place of the log.
        place: String,
    },
    /// The store is fed from a log, and no log is given.
    #[error("the store is one of several that are fed from a log: start the controller with --log")]
    WithoutLog,
    /// A newer program has written the store.
    #[error("the store has level {found}, this program knows up to {known}: use a newer periapt")]
    TooNew {
        /// The store's level.
        found: Level,
        /// The highest level that this program knows.
        known: Level,
    },
    /// The end of the log that the store has applied cannot be read.
    #[error(transparent)]
    Log(#[from] EntryError),
    /// The certificate that the operator gives cannot be used.
    #[error(transparent)]
    Given(#[from] GivenFileError),
    /// The controller cannot make its certificate.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The authorities that the issuer's certificate is checked by cannot be used.
    #[error("no connection to the issuer of identities can be checked")]
    Issuer(#[source] CertificateError),
}

/// An error that ends a running controller.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The first start could not be stored.
    #[error("the controller could not be initialised: {0}")]
    Initialize(Refusal),
    /// The log is not one that this controller can be fed from.
    #[error("{0}")]
    NotOfThisLog(String),
    /// An operator has removed this controller from those of its log.
    #[error("{0}")]
    Removed(String),
    /// A part of the controller ended: a defect.
    #[error("a part of the controller ended unexpectedly")]
    PartEnded,
}
