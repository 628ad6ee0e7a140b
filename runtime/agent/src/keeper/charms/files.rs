//! A charm's files on this host.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use periapt_archive::{Archive, COMPONENT, MAX_ARCHIVE};
use periapt_host_api::CharmDigest;
use sha2::{Digest as _, Sha256};

use super::CharmError;

/// Where a charm's component lies.
pub(super) fn component(directory: &Path) -> PathBuf {
    directory.join(COMPONENT)
}

/// The digest of a charm's component.
pub(super) fn component_digest(directory: &Path) -> io::Result<CharmDigest> {
    let mut file = File::open(component(directory))?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(CharmDigest::from_bytes(digest.finalize().into()));
        }
        digest.update(piece.get(..read).unwrap_or_default());
    }
}

/// Writes an archive's files, read-only, into a new directory. On return they are on the disk.
pub(super) fn extract(archive: &Path, directory: &Path) -> Result<(), CharmError> {
    let mut bytes = Vec::new();
    // One byte more than may be: the reader then says that there is too much.
    File::open(archive)?.take(MAX_ARCHIVE as u64 + 1).read_to_end(&mut bytes)?;
    let archive = Archive::read(&bytes).map_err(|error| CharmError::refused(error.to_string()))?;
    if archive.file(COMPONENT).is_none() {
        return Err(CharmError::refused(format!("the archive holds no {COMPONENT}")));
    }
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true).mode(0o755);
    folders.create(directory)?;
    for (path, content) in archive.files() {
        // The reader of archives lets only plain relative paths pass.
        let target = directory.join(path);
        if let Some(parent) = target.parent() {
            folders.create(parent)?;
        }
        File::options().write(true).create_new(true).mode(0o444).open(&target)?.write_all(content)?;
    }
    rustix::fs::syncfs(File::open(directory)?).map_err(io::Error::from)?;
    Ok(())
}
