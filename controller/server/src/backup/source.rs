//! The directory that a controller is backed up from.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The directory of the checkpoint, in the controller's directory.
const CHECKPOINT: &str = "checkpoint";

/// The directory that a controller is backed up from. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct BackupSource {
    /// The controller's directory; none if its parts lie elsewhere.
    directory: Option<Arc<Path>>,
    /// Admits one backup at a time.
    one: Arc<Semaphore>,
}

/// A checkpoint's directory. It is removed with the value.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) path: PathBuf,
    _one: OwnedSemaphorePermit,
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "the files of a backup could not be removed");
        }
    }
}

impl BackupSource {
    /// Makes a source of a directory, and removes what a killed controller left of a backup.
    pub(crate) fn new(directory: Option<PathBuf>) -> io::Result<Self> {
        if let Some(directory) = &directory {
            remove(&directory.join(CHECKPOINT))?;
        }
        Ok(Self { directory: directory.map(Into::into), one: Arc::new(Semaphore::new(1)) })
    }

    /// Returns the controller's directory.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the place for a checkpoint; none while another backup is made.
    pub(super) fn begin(&self, directory: &Path) -> Option<Checkpoint> {
        let one = Arc::clone(&self.one).try_acquire_owned().ok()?;
        Some(Checkpoint { path: directory.join(CHECKPOINT), _one: one })
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
