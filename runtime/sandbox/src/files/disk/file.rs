//! An open file of storage.

use std::{
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
    os::unix::fs::FileExt as _,
    sync::Arc,
    time::Duration,
};

use rustix::{
    fs::{Stat, fstat, ftruncate},
    io::Errno,
};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::{Filesystem, beneath, price, size_of};

/// A file that is open. Its bytes count as long as a name or a handle leads to it.
#[derive(Debug)]
pub(in crate::files) struct StoredFile {
    filesystem: Arc<Filesystem>,
    file: File,
    inode: u64,
    /// One of the references that a hook's descriptors are counted by.
    _counted: Arc<()>,
}

impl StoredFile {
    pub(super) fn new(filesystem: &Arc<Filesystem>, file: File, inode: u64, counted: Arc<()>) -> Self {
        filesystem.count().opened(inode);
        Self { filesystem: Arc::clone(filesystem), file, inode, _counted: counted }
    }

    /// The same for all handles to one file, and telling nothing of the host's numbers.
    pub(in crate::files) fn identity(&self) -> u64 {
        identity(&self.filesystem, self.inode)
    }

    pub(in crate::files) fn stat(&self) -> Result<Stat, ErrorCode> {
        fstat(&self.file).map_err(beneath::code)
    }

    pub(in crate::files) fn size(&self) -> Result<u64, ErrorCode> {
        Ok(size_of(&self.stat()?))
    }

    /// At most `length` bytes from `offset`; none at the end.
    pub(in crate::files) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ErrorCode> {
        let mut bytes = vec![0; length];
        // An offset beyond what there can be is beyond the end.
        if i64::try_from(offset).is_err() {
            return Ok(Vec::new());
        }
        let read = self.file.read_at(&mut bytes, offset).map_err(failure)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Writes all, or if it fails as much as the disk took.
    pub(in crate::files) fn write(&self, offset: u64, bytes: &[u8], now: Duration) -> Result<(), ErrorCode> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(ErrorCode::FileTooLarge)?;
        self.grow_to(offset..end, |file| file.write_all_at(bytes, offset).map_err(failure))?;
        beneath::set_times(&self.file, None, Some(now))
    }

    /// Cuts the file or fills it with zeros, which count although the disk may not hold them.
    pub(in crate::files) fn resize(&self, size: u64, now: Duration) -> Result<(), ErrorCode> {
        let before = self.size()?;
        if size > before {
            self.grow_to(size..size, |file| ftruncate(file, size).map_err(beneath::code))?;
        } else {
            let mut count = self.filesystem.count();
            ftruncate(&self.file, size).map_err(beneath::code)?;
            count.give(price(before).saturating_sub(price(size)), 0);
        }
        beneath::set_times(&self.file, None, Some(now))
    }

    /// Takes what the file needs to reach to where it is written, and gives back what it did not use.
    fn grow_to(
        &self,
        Range { start: from, end }: Range<u64>,
        change: impl FnOnce(&File) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let mut count = self.filesystem.count();
        let stat = self.stat()?;
        let before = size_of(&stat);
        let wanted = before.max(end);
        if end <= before && has_holes(&stat) {
            // A hole was counted when it was made, and takes of the disk only now.
            count.spare.take(end.saturating_sub(from))?;
        }
        count.take(price(wanted).saturating_sub(price(before)), 0)?;
        let changed = change(&self.file);
        // It may have grown less than it was to, also where nothing failed: what was written may have been nothing.
        let after = self.size().unwrap_or(wanted).max(before);
        count.give(price(wanted).saturating_sub(price(after)), 0);
        changed
    }

    pub(in crate::files) fn set_times(
        &self,
        accessed: Option<Duration>,
        modified: Option<Duration>,
    ) -> Result<(), ErrorCode> {
        beneath::set_times(&self.file, accessed, modified)
    }

    /// Brings the file to the disk; it may take long.
    pub(in crate::files) fn sync(&self) -> Result<(), ErrorCode> {
        self.file.sync_all().map_err(failure)
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        self.filesystem.count().closed(self.inode, &self.file);
    }
}

/// Whether the disk holds less of a file than it is long.
fn has_holes(stat: &Stat) -> bool {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512) < size_of(stat)
}

/// What stands for an inode before a guest.
pub(super) fn identity(filesystem: &Arc<Filesystem>, inode: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (Arc::as_ptr(filesystem) as usize, inode).hash(&mut hasher);
    hasher.finish()
}

fn failure(error: std::io::Error) -> ErrorCode {
    Errno::from_io_error(&error).map_or(ErrorCode::Io, beneath::code)
}
