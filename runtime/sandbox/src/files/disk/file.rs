//! The files of storage that a hook has open.

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

/// An open file. Its bytes count while a name or a handle leads to it.
#[derive(Debug)]
pub(in crate::files) struct StoredFile {
    filesystem: Arc<Filesystem>,
    file: File,
    inode: u64,
    /// The reference by which the hook's descriptors are counted.
    _counted: Arc<()>,
}

impl StoredFile {
    pub(super) fn new(filesystem: &Arc<Filesystem>, file: File, inode: u64, counted: Arc<()>) -> Self {
        filesystem.count().opened(inode);
        Self { filesystem: Arc::clone(filesystem), file, inode, _counted: counted }
    }

    /// Returns an identity that all handles to one file share, and that hides the host's inode numbers.
    pub(in crate::files) fn identity(&self) -> u64 {
        identity(&self.filesystem, self.inode)
    }

    pub(in crate::files) fn stat(&self) -> Result<Stat, ErrorCode> {
        fstat(&self.file).map_err(beneath::code)
    }

    pub(in crate::files) fn size(&self) -> Result<u64, ErrorCode> {
        Ok(size_of(&self.stat()?))
    }

    /// Reads at most `length` bytes from `offset`; none at the end.
    pub(in crate::files) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, ErrorCode> {
        let mut bytes = vec![0; length];
        // Such an offset is beyond the end of any file.
        if i64::try_from(offset).is_err() {
            return Ok(Vec::new());
        }
        let read = self.file.read_at(&mut bytes, offset).map_err(failure)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Writes all bytes, or on failure as many as the disk has room for.
    pub(in crate::files) fn write(&self, offset: u64, bytes: &[u8], now: Duration) -> Result<(), ErrorCode> {
        let end = offset.checked_add(bytes.len() as u64).ok_or(ErrorCode::FileTooLarge)?;
        self.grow_to(offset..end, |file| file.write_all_at(bytes, offset).map_err(failure))?;
        self.touch(now)
    }

    /// Truncates the file, or extends it with zeros, which count even if they are a hole on the disk.
    pub(in crate::files) fn resize(&self, size: u64, now: Duration) -> Result<(), ErrorCode> {
        let before = self.size()?;
        if size > before {
            self.grow_to(size..size, |file| ftruncate(file, size).map_err(beneath::code))?;
        } else {
            let mut count = self.filesystem.count();
            ftruncate(&self.file, size).map_err(beneath::code)?;
            count.give(price(before).saturating_sub(price(size)), 0);
        }
        self.touch(now)
    }

    /// Reserves usage for a change up to `end`, makes the change, and releases unused usage.
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
            // A hole counts since its creation, but takes disk space only when written.
            count.free_space.take(end.saturating_sub(from))?;
        }
        count.take(price(wanted).saturating_sub(price(before)), 0)?;
        let changed = change(&self.file);
        // The file may have grown less, even on success: an empty write does not extend it.
        let after = self.size().unwrap_or(wanted).max(before);
        count.give(price(wanted).saturating_sub(price(after)), 0);
        changed
    }

    /// Sets the time of modification after a change. The kernel refuses other times than now for a file of a workload's
    /// user. There the host's time stays, which is harmless.
    fn touch(&self, now: Duration) -> Result<(), ErrorCode> {
        match beneath::set_times(&self.file, None, Some(now)) {
            Err(ErrorCode::NotPermitted) => Ok(()),
            set => set,
        }
    }

    pub(in crate::files) fn set_times(
        &self,
        accessed: Option<Duration>,
        modified: Option<Duration>,
    ) -> Result<(), ErrorCode> {
        beneath::set_times(&self.file, accessed, modified)
    }

    /// Syncs the file to the disk, which may take long.
    pub(in crate::files) fn sync(&self) -> Result<(), ErrorCode> {
        self.file.sync_all().map_err(failure)
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        self.filesystem.count().closed(self.inode, &self.file);
    }
}

/// Returns true if a file occupies less of the disk than its length.
fn has_holes(stat: &Stat) -> bool {
    u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512) < size_of(stat)
}

/// Returns a number that stands for an inode, for guests.
pub(super) fn identity(filesystem: &Arc<Filesystem>, inode: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (Arc::as_ptr(filesystem) as usize, inode).hash(&mut hasher);
    hasher.finish()
}

fn failure(error: std::io::Error) -> ErrorCode {
    Errno::from_io_error(&error).map_or(ErrorCode::Io, beneath::code)
}
