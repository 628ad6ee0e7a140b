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

/// Where a charm's component lies.
pub(super) fn component(directory: &Path) -> PathBuf {
    directory.join(COMPONENT)
}

/// What of a charm is compiled.
#[derive(Debug)]
pub(super) struct Parts {
    /// The component's digest.
    pub(super) component: Digest,
    /// Modules that are compiled by themselves.
    pub(super) modules: Vec<SharedModule>,
}

/// The parts of a charm's component, which may have so many bytes.
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

/// Copies a module out of its component into a file of its own. Others run what is compiled of it, so it must be what
/// was found there.
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

/// Writes an archive's files, read-only, into a new directory; those that another charm brought, too, are links to what lies
/// in `shared`. On return they are on the disk.
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
