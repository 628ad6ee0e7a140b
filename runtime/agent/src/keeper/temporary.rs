//! Unfinished files and directories.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A path that is removed on drop, unless it was moved away.
#[derive(Debug)]
pub(super) struct Temporary(PathBuf);

impl Temporary {
    /// Creates the value, but no file.
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Leaves the file or directory where it is.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a temporary file stays until the next start");
        }
    }
}

/// Removes a file or a directory, if it exists.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
