//! Storage: a directory of the host's disk that outlives hooks, within a bound that holds whatever a guest does.
//!
//! All names are looked up by the kernel beneath the directory that a handle stands for, following no link and
//! crossing no mount; links and special files cannot be made. What is there is counted when the directory is opened,
//! and kept count of with each call: in whole blocks, holes included, so that neither sparse nor tiny files get more
//! of the disk than the bound says. Times are those of the hook's clock.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

mod beneath;
mod directory;
mod file;
mod spare;
mod walk;

pub(super) use directory::{Directory, Opened, kind};
pub(super) use file::StoredFile;
use spare::Spare;
pub use spare::spare_bytes;

/// What a file or directory takes beside its content, and the unit in which content is counted: a page, as the
/// usual file systems of the host have it.
const BLOCK: u64 = 4_096;

/// What a filesystem may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes: a block for each file and directory, and content in whole blocks.
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
}

/// What a filesystem holds, counted in the same way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Bytes.
    pub bytes: u64,
    /// Files and directories.
    pub files: u64,
}

/// Why a filesystem cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FilesystemError {
    /// Another process has it: a runner that is about to end.
    #[error("storage is in use by another process")]
    InUse,
    /// The directory cannot be opened, counted or deleted.
    #[error("storage cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

/// A bounded directory, held by this process alone.
#[derive(Debug)]
pub struct Filesystem {
    root: Arc<OwnedFd>,
    count: Mutex<Count>,
}

/// A filesystem as a hook finds it.
#[derive(Debug, Clone)]
pub struct StorageMount {
    /// What lies there.
    pub filesystem: Arc<Filesystem>,
    /// The absolute path at which the hook finds it.
    pub location: String,
    /// Whether the hook may only read it.
    pub read_only: bool,
}

/// The books of one filesystem.
#[derive(Debug)]
struct Count {
    bounds: Bounds,
    used: Used,
    spare: Spare,
    /// By inode: how many handles a file has, and whether its name is gone. Such a file counts until it is closed.
    open: BTreeMap<u64, Held>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Held {
    handles: usize,
    nameless: bool,
}

impl Filesystem {
    /// Opens a directory and counts what it holds, which takes as long as it holds much.
    ///
    /// # Errors
    /// [`FilesystemError::InUse`] while another process has it; else the system's reason.
    pub fn open(directory: &Path, bounds: Bounds) -> Result<Self, FilesystemError> {
        let root = Arc::new(locked(directory)?);
        let mut used = Used::default();
        walk::all(root.as_fd(), |seen| {
            used.files += 1;
            used.bytes += match seen {
                walk::Seen::File { size, .. } => price(size),
                walk::Seen::Directory { .. } => BLOCK,
            };
            Ok(())
        })?;
        let spare = Spare::new(Arc::clone(&root));
        let count = Mutex::new(Count { bounds, used, spare, open: BTreeMap::new() });
        Ok(Self { root, count })
    }

    /// Deletes a directory with all that it holds.
    ///
    /// # Errors
    /// As [`Self::open`]; what was deleted until then is gone. That there is no such directory is no error.
    pub fn delete(directory: &Path) -> Result<(), FilesystemError> {
        let root = match locked(directory) {
            Err(FilesystemError::Unusable(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            root => root?,
        };
        walk::all(root.as_fd(), |seen| walk::remove(&seen))?;
        Ok(std::fs::remove_dir(directory)?)
    }

    /// What it may hold.
    pub fn bounds(&self) -> Bounds {
        self.count().bounds
    }

    /// What it holds.
    pub fn used(&self) -> Used {
        self.count().used
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        // The books are changed in one go, so they are whole after a panic, too.
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a directory, not through a link, and takes its lock: two runners must not keep two books of it.
fn locked(directory: &Path) -> Result<OwnedFd, FilesystemError> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(rustix::fs::CWD, directory, flags, Mode::empty()).map_err(io::Error::from)?;
    match flock(&root, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(root),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(FilesystemError::InUse),
        Err(error) => Err(FilesystemError::Unusable(error.into())),
    }
}

/// What a file of a size takes.
fn price(size: u64) -> u64 {
    size.div_ceil(BLOCK).saturating_mul(BLOCK).saturating_add(BLOCK)
}

impl Count {
    /// Takes what something new needs, all or nothing.
    fn take(&mut self, bytes: u64, files: u64) -> Result<(), ErrorCode> {
        let after = Used {
            bytes: self.used.bytes.saturating_add(bytes),
            files: self.used.files.saturating_add(files),
        };
        let grows = bytes > 0 || files > 0;
        if grows && (after.bytes > self.bounds.bytes || after.files > self.bounds.files) {
            return Err(ErrorCode::InsufficientSpace);
        }
        self.spare.take(bytes)?;
        self.used = after;
        Ok(())
    }

    fn give(&mut self, bytes: u64, files: u64) {
        self.used.bytes = self.used.bytes.saturating_sub(bytes);
        self.used.files = self.used.files.saturating_sub(files);
    }

    /// A file lost its name: it counts until nobody has it open.
    fn unnamed(&mut self, inode: u64, size: u64) {
        match self.open.get_mut(&inode) {
            Some(held) => held.nameless = true,
            None => self.give(price(size), 1),
        }
    }

    fn opened(&mut self, inode: u64) {
        self.open.entry(inode).or_default().handles += 1;
    }

    fn closed(&mut self, inode: u64, file: &File) {
        let Some(held) = self.open.get_mut(&inode) else { return };
        held.handles = held.handles.saturating_sub(1);
        if held.handles > 0 {
            return;
        }
        let nameless = held.nameless;
        self.open.remove(&inode);
        if nameless {
            let size = fstat(file).map_or(0, |stat| size_of(&stat));
            self.give(price(size), 1);
        }
    }
}

/// A size as it should be: never negative.
fn size_of(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests;
