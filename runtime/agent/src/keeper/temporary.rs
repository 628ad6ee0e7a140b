//! Files and directories that are being made.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A path whose file or directory goes when this does, unless it was moved away.
#[derive(Debug)]
pub(super) struct Temporary(PathBuf);

impl Temporary {
    /// Nothing is there yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "a temporary file stays until the next start");
        }
    }
}

/// Removes a file or a directory; that it is not there is as good.
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
