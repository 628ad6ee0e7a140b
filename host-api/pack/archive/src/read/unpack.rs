//! Unpacking an archive's files to disk, one after the other.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{ArchiveError, ArchiveReader, CopyError};

/// An archive that was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive is invalid.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A file cannot be written on this host.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path of the file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

impl ArchiveReader<'_> {
    /// Creates a directory, and unpacks all files below it, read-only.
    ///
    /// # Errors
    /// [`UnpackError`]. Files that were written stay.
    pub fn unpack(&self, directory: &Path) -> Result<(), UnpackError> {
        let mut folders = fs::DirBuilder::new();
        folders.recursive(true).mode(0o755);
        let make = |path: &Path| folders.create(path).map_err(|source| failed(path, source));
        make(directory)?;
        for path in self.paths() {
            // The path never leads out and is unique: [`ArchiveReader::open`] checked it.
            let target = directory.join(path);
            if let Some(parent) = target.parent() {
                make(parent)?;
            }
            let mut options = File::options();
            options.write(true).create_new(true).mode(0o444);
            let mut file = options.open(&target).map_err(|source| failed(&target, source))?;
            self.copy(path, &mut file).map_err(|error| match error {
                CopyError::Archive(error) => UnpackError::Archive(error),
                CopyError::Write(source) => failed(&target, source),
            })?;
        }
        Ok(())
    }
}

fn failed(path: &Path, source: io::Error) -> UnpackError {
    UnpackError::Write { path: path.to_owned(), source }
}
