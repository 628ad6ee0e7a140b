//! Writing an archive's files to a disk, one after the other.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use super::{ArchiveError, ArchiveReader, CopyError};

/// Why an archive was not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The archive is to blame.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// This host is.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// What could not be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ArchiveReader<'_> {
    /// Unpacks all files, read-only, below a directory, which is made.
    ///
    /// # Errors
    /// [`UnpackError`]; what was written stays.
    pub fn unpack(&self, directory: &Path) -> Result<(), UnpackError> {
        let mut folders = fs::DirBuilder::new();
        folders.recursive(true).mode(0o755);
        let make = |path: &Path| folders.create(path).map_err(|source| failed(path, source));
        make(directory)?;
        for path in self.paths() {
            // It leads nowhere else, and no other file's is the same: that was checked when the archive was opened.
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
