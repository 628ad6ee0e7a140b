//! The reasons why a backup cannot be read or restored.

use std::{
    io,
    path::{Path, PathBuf},
};

use periapt_blobs::BlobError;
use periapt_host_api::{Digest, Revision};
use periapt_store::StoreError;

/// The reason why a backup cannot be read or restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is no backup.
    #[error("{} is no backup of a periapt controller", .0.display())]
    Foreign(PathBuf),
    /// A newer Periapt wrote the file.
    #[error("{} has form {form}, this program knows up to {known}: use a newer periapt", .path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The form of the file.
        form: u32,
        /// The newest known form.
        known: u32,
    },
    /// The file ends early.
    #[error("{} is incomplete: it ends in the middle, after {bytes} bytes; use another backup", .path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The bytes that are there.
        bytes: u64,
    },
    /// The file was changed.
    #[error("{} is damaged: {what}; use another backup", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        what: String,
    },
    /// The keys cannot be decrypted.
    #[error("the passphrase does not open the keys in {}, or they were changed", .0.display())]
    WrongPassphrase(PathBuf),
    /// An incremental backup builds on one that is not there.
    #[error(
        "{} is incremental and builds on {base}, a backup of revision {revision}, which is neither beside it nor given; name \
         it by --restore-base", .path.display()
    )]
    NoBase {
        /// The incremental backup.
        path: PathBuf,
        /// The name that its base had.
        base: String,
        /// The revision of its base.
        revision: Revision,
    },
    /// An incremental backup builds on another one.
    #[error("{} is not the backup that {} builds on: their digests differ", .base.display(), .path.display())]
    OtherBase {
        /// The incremental backup.
        path: PathBuf,
        /// The other backup.
        base: PathBuf,
    },
    /// A backup is given that no other one builds on.
    #[error("no backup that is restored builds on {}: leave it out", .0.display())]
    UnusedBase(PathBuf),
    /// The directory is none of a controller.
    #[error("{} is no directory of a periapt controller: it has no store", .0.display())]
    NoController(PathBuf),
    /// The controller of the directory runs.
    #[error("the controller of {} runs: end it first", .0.display())]
    Running(PathBuf),
    /// A registered blob is not in the directory, or damaged.
    #[error(
        "the blob {digest} is not in {}, or damaged: take the directory of another controller of the set, or a backup; if \
         the blobs are in an object store, copy them below another prefix, and name it by --blobs", .directory.display()
    )]
    NoBlob {
        /// The directory.
        directory: PathBuf,
        /// The blob.
        digest: Digest,
    },
    /// The derivation of the key is out of bounds.
    #[error("the key cannot be derived from the passphrase: {0}")]
    Derivation(String),
    /// A key is missing, or has another form.
    #[error("the controller's keys cannot be used: {0}")]
    Keys(String),
    /// The directory is in use.
    #[error("{} already exists: a backup is restored into a new directory", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The store cannot be opened or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The blobs cannot be written.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

/// Returns the maker of an error about a file that cannot be written.
pub(super) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Unwritable { path, source }
}
