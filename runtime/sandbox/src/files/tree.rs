//! A tree of names, stored as a flat map, so that deep directories cannot exhaust the host's stack.

use std::{
    collections::BTreeMap,
    fs::File,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// The number of a directory in its tree. Numbers are not reused.
pub(super) type DirectoryId = u64;

/// The number of the root.
pub(super) const ROOT: DirectoryId = 0;

/// The target of a name.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    Directory(DirectoryId),
    /// A file in memory.
    Memory(Arc<MemoryFile>),
    /// A read-only host file.
    Disk(Arc<DiskEntry>),
    /// A read-only host file that is already open, with a number as its identity.
    Held(Arc<OpenFile>, u64),
}

/// A host file.
#[derive(Debug)]
pub(super) struct DiskEntry {
    pub(super) path: Box<Path>,
    pub(super) size: u64,
    /// The file's place in the tree, which is its identity.
    pub(super) number: u64,
}

/// An open host file. Its descriptor lives as long as a handle or a stream refers to it.
#[derive(Debug)]
pub(super) struct OpenFile {
    pub(super) file: File,
    /// The reference by which [`super::Files`] counts the hook's descriptors.
    pub(super) _counted: Arc<()>,
}

/// A directory.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) parent: DirectoryId,
    /// The entries, sorted like every listing.
    pub(super) entries: BTreeMap<Arc<str>, Entry>,
    pub(super) changed: Duration,
}

/// All directories of a tree.
#[derive(Debug)]
pub(super) struct Tree {
    directories: BTreeMap<DirectoryId, Directory>,
    next: DirectoryId,
}

impl Tree {
    pub(super) fn new(now: Duration) -> Self {
        let root = Directory { parent: ROOT, entries: BTreeMap::new(), changed: now };
        Self { directories: BTreeMap::from([(ROOT, root)]), next: ROOT + 1 }
    }

    /// Returns a directory, or an error if it was removed while a handle to it was open.
    pub(super) fn directory(&self, id: DirectoryId) -> Result<&Directory, ErrorCode> {
        self.directories.get(&id).ok_or(ErrorCode::NoEntry)
    }

    pub(super) fn directory_mut(&mut self, id: DirectoryId) -> Result<&mut Directory, ErrorCode> {
        self.directories.get_mut(&id).ok_or(ErrorCode::NoEntry)
    }

    /// Creates an empty directory in another.
    pub(super) fn make_directory(
        &mut self,
        parent: DirectoryId,
        name: &str,
        now: Duration,
    ) -> Result<DirectoryId, ErrorCode> {
        let id = self.next;
        self.insert(parent, name, Entry::Directory(id), now)?;
        self.directories.insert(id, Directory { parent, entries: BTreeMap::new(), changed: now });
        self.next += 1;
        Ok(id)
    }

    /// Inserts an entry under a free name.
    pub(super) fn insert(
        &mut self,
        parent: DirectoryId,
        name: &str,
        entry: Entry,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let parent = self.directory_mut(parent)?;
        if parent.entries.contains_key(name) {
            return Err(ErrorCode::Exist);
        }
        parent.entries.insert(name.into(), entry);
        parent.changed = now;
        Ok(())
    }

    /// Removes a name with its entry. A directory must be empty.
    pub(super) fn remove(
        &mut self,
        parent: DirectoryId,
        name: &str,
        now: Duration,
    ) -> Result<Entry, ErrorCode> {
        let entry = self.directory(parent)?.entries.get(name).cloned().ok_or(ErrorCode::NoEntry)?;
        if let Entry::Directory(id) = entry {
            if !self.directory(id)?.entries.is_empty() {
                return Err(ErrorCode::NotEmpty);
            }
            self.directories.remove(&id);
        }
        let parent = self.directory_mut(parent)?;
        parent.entries.remove(name);
        parent.changed = now;
        Ok(entry)
    }

    /// Moves an entry to a free name.
    pub(super) fn rename(
        &mut self,
        (from, old): (DirectoryId, &str),
        (to, new): (DirectoryId, &str),
        now: Duration,
    ) -> Result<(), ErrorCode> {
        let entry = self.directory(from)?.entries.get(old).cloned().ok_or(ErrorCode::NoEntry)?;
        if let Entry::Directory(id) = entry
            && self.is_within(to, id)
        {
            return Err(ErrorCode::Invalid);
        }
        self.insert(to, new, entry.clone(), now)?;
        let source = self.directory_mut(from)?;
        source.entries.remove(old);
        source.changed = now;
        if let Entry::Directory(id) = entry {
            self.directory_mut(id)?.parent = to;
        }
        Ok(())
    }

    /// Returns true if a directory is `ancestor` or lies below it.
    fn is_within(&self, mut id: DirectoryId, ancestor: DirectoryId) -> bool {
        loop {
            if id == ancestor {
                return true;
            }
            match self.directories.get(&id) {
                Some(directory) if id != ROOT => id = directory.parent,
                _ => return false,
            }
        }
    }
}

/// The remaining quota of one `/tmp`, for all its files together.
#[derive(Debug)]
pub(super) struct Quota {
    bytes: AtomicU64,
    files: AtomicU64,
}

impl Quota {
    pub(super) fn new(bytes: u64, files: u64) -> Arc<Self> {
        Arc::new(Self { bytes: AtomicU64::new(bytes), files: AtomicU64::new(files) })
    }

    /// Takes quota for a new file or directory.
    pub(super) fn take_file(&self) -> Result<(), ErrorCode> {
        Self::take(&self.files, 1)
    }

    pub(super) fn give_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    fn take(from: &AtomicU64, amount: u64) -> Result<(), ErrorCode> {
        from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount))
            .map(|_| ())
            .map_err(|_| ErrorCode::InsufficientSpace)
    }
}

/// The divisor of a file's allocated memory: a file that uses less than this fraction shrinks to twice its size.
const SHRINKS_BELOW: usize = 4;

/// A file in memory. It lives while a name or a handle leads to it, and its bytes count for as long.
#[derive(Debug)]
pub(super) struct MemoryFile {
    pub(super) number: u64,
    content: Mutex<Content>,
    quota: Arc<Quota>,
}

#[derive(Debug)]
pub(super) struct Content {
    bytes: Vec<u8>,
    pub(super) modified: Duration,
    pub(super) accessed: Duration,
}

impl MemoryFile {
    /// Creates an empty file. The caller has taken quota for it.
    pub(super) fn new(number: u64, quota: &Arc<Quota>, now: Duration) -> Arc<Self> {
        let content = Content { bytes: Vec::new(), modified: now, accessed: now };
        Arc::new(Self { number, content: Mutex::new(content), quota: Arc::clone(quota) })
    }

    pub(super) fn content(&self) -> MutexGuard<'_, Content> {
        // A hook runs on one fiber, and no code panics while it holds the lock. A partial write would affect only
        // the guest.
        self.content.lock()
    }

    pub(super) fn size(&self) -> u64 {
        self.content().bytes.len() as u64
    }

    /// Reads at most `length` bytes from `offset`; none at the end.
    pub(super) fn read(&self, offset: u64, length: usize) -> Vec<u8> {
        let content = self.content();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.bytes.len());
        let end = start.saturating_add(length).min(content.bytes.len());
        content.bytes.get(start..end).unwrap_or_default().to_vec()
    }

    /// Writes all bytes or none.
    pub(super) fn write(&self, offset: u64, bytes: &[u8], now: Duration) -> Result<(), ErrorCode> {
        let mut content = self.content();
        let end = offset.checked_add(bytes.len() as u64).ok_or(ErrorCode::FileTooLarge)?;
        if end > content.bytes.len() as u64 {
            self.resize_locked(&mut content, end)?;
        }
        let start = usize::try_from(offset).map_err(|_| ErrorCode::FileTooLarge)?;
        if let Some(place) = content.bytes.get_mut(start..start.saturating_add(bytes.len())) {
            place.copy_from_slice(bytes);
        }
        content.modified = now;
        Ok(())
    }

    /// Truncates the file or extends it with zeros.
    pub(super) fn resize(&self, size: u64, now: Duration) -> Result<(), ErrorCode> {
        let mut content = self.content();
        self.resize_locked(&mut content, size)?;
        content.modified = now;
        Ok(())
    }

    fn resize_locked(&self, content: &mut Content, size: u64) -> Result<(), ErrorCode> {
        let before = content.bytes.len() as u64;
        if size > before {
            Quota::take(&self.quota.bytes, size - before)?;
        }
        // The quota is far below the size of the address space.
        content.bytes.resize(usize::try_from(size).map_err(|_| ErrorCode::FileTooLarge)?, 0);
        if size < before {
            // The memory shrinks in large steps only, so that alternate truncation and growth do not move the file
            // each time.
            if content.bytes.len() < content.bytes.capacity() / SHRINKS_BELOW {
                content.bytes.shrink_to(content.bytes.len() * 2);
            }
            self.quota.bytes.fetch_add(before - size, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let size = self.size();
        self.quota.bytes.fetch_add(size, Ordering::Relaxed);
        self.quota.give_file();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    fn file(quota: &Arc<Quota>) -> Arc<MemoryFile> {
        quota.take_file().unwrap();
        MemoryFile::new(1, quota, NOW)
    }

    #[test]
    fn bytes_count_until_the_last_handle_is_gone() {
        let quota = Quota::new(10, 2);
        let first = file(&quota);
        let held = Arc::clone(&first);
        first.write(0, b"12345678", NOW).unwrap();
        let second = file(&quota);
        assert_eq!(second.write(0, b"123", NOW), Err(ErrorCode::InsufficientSpace));
        assert_eq!(second.size(), 0, "a write that does not fit writes nothing");
        drop(first);
        assert!(second.write(0, b"123", NOW).is_err());
        drop(held);
        second.write(0, b"123", NOW).unwrap();
        assert_eq!(second.read(1, 10), b"23");
    }

    #[test]
    fn memory_is_given_back_without_moving_a_file_at_each_cut() {
        let quota = Quota::new(1 << 20, 1);
        let file = file(&quota);
        file.resize(1 << 20, NOW).unwrap();
        let place = |file: &MemoryFile| {
            let content = file.content();
            (content.bytes.as_ptr(), content.bytes.capacity())
        };
        let before = place(&file);
        for cut in [1, 0, 700_000, 0] {
            file.resize((1 << 20) - cut, NOW).unwrap();
            assert_eq!(place(&file), before);
        }
        file.resize(1_000, NOW).unwrap();
        assert!(file.content().bytes.capacity() <= 4_000);
    }

    #[test]
    fn a_hole_counts_as_bytes() {
        let quota = Quota::new(10, 2);
        let file = file(&quota);
        assert_eq!(file.write(1 << 40, b"x", NOW), Err(ErrorCode::InsufficientSpace));
        assert_eq!(file.write(u64::MAX, b"x", NOW), Err(ErrorCode::FileTooLarge));
        file.write(8, b"x", NOW).unwrap();
        assert_eq!(file.read(0, 100), b"\0\0\0\0\0\0\0\0x");
        file.resize(0, NOW).unwrap();
        file.write(0, b"1234567890", NOW).unwrap();
    }

    #[test]
    fn a_directory_cannot_be_moved_into_itself() {
        let mut tree = Tree::new(NOW);
        let outer = tree.make_directory(ROOT, "outer", NOW).unwrap();
        let inner = tree.make_directory(outer, "inner", NOW).unwrap();
        assert_eq!(tree.rename((ROOT, "outer"), (inner, "x"), NOW), Err(ErrorCode::Invalid));
        tree.rename((outer, "inner"), (ROOT, "inner"), NOW).unwrap();
        tree.rename((ROOT, "outer"), (inner, "outer"), NOW).unwrap();
        assert!(tree.is_within(outer, inner));
    }

    #[test]
    fn a_directory_that_is_not_empty_stays() {
        let mut tree = Tree::new(NOW);
        let outer = tree.make_directory(ROOT, "outer", NOW).unwrap();
        tree.make_directory(outer, "inner", NOW).unwrap();
        assert!(matches!(tree.remove(ROOT, "outer", NOW), Err(ErrorCode::NotEmpty)));
        tree.remove(outer, "inner", NOW).unwrap();
        tree.remove(ROOT, "outer", NOW).unwrap();
        assert!(tree.directory(outer).is_err());
    }
}
