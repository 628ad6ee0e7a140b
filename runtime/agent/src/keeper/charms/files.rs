//! A charm's files on this host.

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    ops::Range,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use periapt_archive::{Archive, COMPONENT, MAX_ARCHIVE};
use periapt_host_api::CharmDigest;
use periapt_sandbox::{SharedModule, shared_modules};

use super::CharmError;

/// Where a charm's component lies.
pub(super) fn component(directory: &Path) -> PathBuf {
    directory.join(COMPONENT)
}

/// What of a charm is compiled.
#[derive(Debug)]
pub(super) struct Parts {
    /// The component's digest.
    pub(super) component: CharmDigest,
    /// Modules that are compiled by themselves.
    pub(super) modules: Vec<SharedModule>,
}

/// The parts of a charm's component.
pub(super) fn parts(directory: &Path) -> io::Result<Parts> {
    let component = fs::read(component(directory))?;
    Ok(Parts { component: CharmDigest::of(&component), modules: shared_modules(&component) })
}

/// Copies some bytes of a file into another.
pub(super) fn copy_part(whole: &Path, range: Range<usize>, part: &Path) -> io::Result<()> {
    let mut whole = File::open(whole)?;
    whole.seek(SeekFrom::Start(range.start as u64))?;
    io::copy(&mut whole.take(range.len() as u64), &mut File::create(part)?)?;
    Ok(())
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
