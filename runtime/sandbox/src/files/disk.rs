//! Storage: a directory on the host's disk that outlives hooks, with limits that no guest can exceed.
//!
//! The kernel looks up all names beneath a handle's directory, without following links or crossing mounts. Guests
//! cannot create links or special files. The sandbox counts the content when it opens the directory, and then keeps
//! the count with each call. It counts whole blocks, including holes, so neither sparse files nor tiny ones exceed
//! the limit on the disk. File times are those of the hook's clock.

use std::{
    collections::BTreeMap,
    fs::File,
    io,
    os::fd::{AsFd as _, OwnedFd},
    path::Path,
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, openat};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

mod beneath;
mod directory;
mod file;
mod free_space;
mod walk;

pub(super) use directory::{Directory, OpenMode, Opened, kind};
pub(super) use file::StoredFile;
use free_space::FreeSpace;
pub use free_space::spare_bytes;

/// The size of a file or directory beside its content, and the unit of content, in bytes: a page, like in the usual
/// file systems.
const BLOCK: u64 = 4_096;

/// The limits of a filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The most bytes: a block for each file and directory, and content in whole blocks.
    pub bytes: u64,
    /// The most files and directories.
    pub files: u64,
}

/// The usage of a filesystem, counted like [`Bounds`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// The number of bytes.
    pub bytes: u64,
    /// The number of files and directories.
    pub files: u64,
}

/// An error of opening or deleting a filesystem.
#[derive(Debug, thiserror::Error)]
pub enum FilesystemError {
    /// Another process holds the lock, such as a runner that is ending.
    #[error("storage is in use by another process")]
    InUse,
    /// Directories of a container's other users lie in it, and this process has no rights over their files.
    #[error(
        "directories of other users of a container lie in it ({0}): the agent needs `--workloads namespaces`, newuidmap, \
         newgidmap and its range in /etc/subuid and /etc/subgid, or to run as root"
    )]
    Foreign(#[source] io::Error),
    /// The directory cannot be opened, counted or deleted.
    #[error("storage cannot be used: {0}")]
    Unusable(#[from] io::Error),
}

/// Returns what a directory holds, which others may change meanwhile; none if that is more than the limits allow. Holes of
/// files take no space here: they are those of a program that is no guest, whose content is bounded by the disk space that
/// it takes. The time and the memory are bounded by the limits.
///
/// # Errors
/// The directory cannot be read, or a part of it was moved meanwhile.
pub fn measure_storage(directory: &Path, bounds: Bounds) -> io::Result<Option<Used>> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(rustix::fs::CWD, directory, flags, Mode::empty())?;
    let mut used = Used::default();
    let is_whole = walk::up_to(bounds.files, root.as_fd(), |seen| {
        used.files += 1;
        used.bytes = used.bytes.saturating_add(match seen {
            walk::WalkEntry::File { disk, .. } => disk.saturating_add(BLOCK),
            walk::WalkEntry::Directory { .. } => BLOCK,
        });
        Ok(())
    })?;
    Ok(Some(used).filter(|used| is_whole && used.bytes <= bounds.bytes))
}

impl FilesystemError {
    /// Returns the error of a walk through the content.
    fn of_content(error: io::Error) -> Self {
        match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::ACCESS) => Self::Foreign(error),
            _ => Self::Unusable(error),
        }
    }
}

/// A directory with limits, locked by this process.
#[derive(Debug)]
pub struct Filesystem {
    root: Arc<OwnedFd>,
    count: Mutex<Count>,
}

/// A filesystem at its place in a hook.
#[derive(Debug, Clone)]
pub struct StorageMount {
    /// The filesystem.
    pub filesystem: Arc<Filesystem>,
    /// The absolute path in the hook.
    pub location: String,
    /// True if the hook may only read.
    pub read_only: bool,
}

/// The usage of a filesystem and its limits.
#[derive(Debug)]
struct Count {
    bounds: Bounds,
    used: Used,
    free_space: FreeSpace,
    /// The open files, by inode. A file without a name counts until its last handle closes.
    open: BTreeMap<u64, OpenInode>,
}

#[derive(Debug, Clone, Copy, Default)]
struct OpenInode {
    handles: usize,
    nameless: bool,
}

impl Filesystem {
    /// Opens and locks a directory, and counts its content; the time is proportional to the number of entries.
    ///
    /// # Errors
    /// [`FilesystemError::InUse`] if another process holds the lock, or else an error of the file system.
    pub fn open(directory: &Path, bounds: Bounds) -> Result<Self, FilesystemError> {
        let root = Arc::new(locked(directory)?);
        let mut used = Used::default();
        walk::all(root.as_fd(), |seen| {
            used.files += 1;
            used.bytes += match seen {
                walk::WalkEntry::File { size, .. } => price(size),
                walk::WalkEntry::Directory { .. } => BLOCK,
            };
            Ok(())
        })
        .map_err(FilesystemError::of_content)?;
        let free_space = FreeSpace::new(Arc::clone(&root));
        let count = Mutex::new(Count { bounds, used, free_space, open: BTreeMap::new() });
        Ok(Self { root, count })
    }

    /// Deletes a directory with its content. A missing directory is no error.
    ///
    /// # Errors
    /// Those of [`Self::open`]. What was deleted before the error stays deleted.
    pub fn delete(directory: &Path) -> Result<(), FilesystemError> {
        let root = match locked(directory) {
            Err(FilesystemError::Unusable(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            root => root?,
        };
        walk::all(root.as_fd(), |seen| walk::remove(&seen)).map_err(FilesystemError::of_content)?;
        Ok(std::fs::remove_dir(directory)?)
    }

    /// Returns the limits.
    pub fn bounds(&self) -> Bounds {
        self.count().bounds
    }

    /// Returns the usage.
    pub fn used(&self) -> Used {
        self.count().used
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        // No change of the count panics halfway, so the count is consistent after a panic.
        self.count.lock()
    }
}

/// Opens a directory, but no link, and locks it: two runners must not count the same directory.
fn locked(directory: &Path) -> Result<OwnedFd, FilesystemError> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let root = openat(rustix::fs::CWD, directory, flags, Mode::empty()).map_err(io::Error::from)?;
    match flock(&root, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(root),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(FilesystemError::InUse),
        Err(error) => Err(FilesystemError::Unusable(error.into())),
    }
}

/// Returns the counted size of a file, from its length.
fn price(size: u64) -> u64 {
    size.div_ceil(BLOCK).saturating_mul(BLOCK).saturating_add(BLOCK)
}

impl Count {
    /// Adds to the usage, all or nothing.
    fn take(&mut self, bytes: u64, files: u64) -> Result<(), ErrorCode> {
        let after = Used {
            bytes: self.used.bytes.saturating_add(bytes),
            files: self.used.files.saturating_add(files),
        };
        let grows = bytes > 0 || files > 0;
        if grows && (after.bytes > self.bounds.bytes || after.files > self.bounds.files) {
            return Err(ErrorCode::InsufficientSpace);
        }
        self.free_space.take(bytes)?;
        self.used = after;
        Ok(())
    }

    fn give(&mut self, bytes: u64, files: u64) {
        self.used.bytes = self.used.bytes.saturating_sub(bytes);
        self.used.files = self.used.files.saturating_sub(files);
    }

    /// Marks a file as nameless. It counts until its last handle closes.
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

/// Returns the disk space of a file, in bytes. The kernel counts in units of 512.
fn disk_of(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512)
}

/// Returns a file's size, which is never negative.
fn size_of(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests;
