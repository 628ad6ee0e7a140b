//! A charm's files on this host.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use periapt_archive::{ArchiveError, ArchiveReader, COMPONENT, UnpackError};
use periapt_host_api::Digest;
use periapt_sandbox::{SharedModule, shared_modules};

use super::{CharmError, share};

/// Returns the path of a charm's component.
pub(super) fn component(directory: &Path) -> PathBuf {
    directory.join(COMPONENT)
}

/// The parts of a charm that are compiled.
#[derive(Debug)]
pub(super) struct Parts {
    /// The component's digest.
    pub(super) component: Digest,
    /// The shared modules, which are compiled separately.
    pub(super) modules: Vec<SharedModule>,
}

/// Reads the parts of a charm's component, which may have at most `most` bytes.
pub(super) fn parts(directory: &Path, most: u64) -> Result<Parts, CharmError> {
    let mut file = File::open(component(directory))?;
    let bytes = file.metadata()?.len();
    if bytes > most {
        let (most, short) = (most >> 20, bytes.div_ceil(1 << 20));
        let error = format!("the component is too large: {short} MiB of at most {most} MiB");
        return Err(CharmError::refused(error));
    }
    let mut component = Vec::new();
    file.read_to_end(&mut component)?;
    Ok(Parts { component: Digest::of(&component), modules: shared_modules(&component) })
}

/// Copies a module from its component into its own file. Other charms will run its code, so the copy's digest must be
/// the module's.
pub(super) fn copy_module(component: &Path, module: &SharedModule, alone: &Path) -> io::Result<()> {
    let mut file = File::open(component)?;
    file.seek(SeekFrom::Start(module.range.start as u64))?;
    let mut bytes = Vec::new();
    file.take(module.range.len() as u64).read_to_end(&mut bytes)?;
    if Digest::of(&bytes) != module.digest {
        return Err(io::Error::other(format!("{} changed while it was read", component.display())));
    }
    fs::write(alone, bytes)
}

/// Writes an archive's files, read-only, into a new directory and to the disk. Files that another charm has, too,
/// become links to those in `shared`.
pub(super) fn extract(archive: &Path, directory: &Path, shared: &Path) -> Result<(), CharmError> {
    let broken = |error: ArchiveError| match error {
        ArchiveError::Unreadable(error) => CharmError::Away(error.to_string()),
        error => CharmError::refused(format!("it cannot be unpacked: {error}")),
    };
    let archive = ArchiveReader::open(File::open(archive)?).map_err(broken)?;
    if archive.size(COMPONENT).is_none() {
        return Err(CharmError::refused(format!("the archive holds no {COMPONENT}")));
    }
    archive.unpack(directory).map_err(|error| match error {
        UnpackError::Archive(error) => broken(error),
        error @ UnpackError::Write { .. } => CharmError::Away(error.to_string()),
    })?;
    share::share(directory, shared)?;
    rustix::fs::syncfs(File::open(directory)?).map_err(io::Error::from)?;
    Ok(())
}
