//! The free space of the host's disk. Limits of storage reserve no space, so together they may exceed the disk. A part
//! of the disk stays free for the host.

use std::{io, os::fd::OwnedFd, path::Path, sync::Arc};

use rustix::fs::{fstatvfs, statvfs};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// The fraction of a disk that stays free, as a divisor, and its maximum in bytes. Controllers and agents write to that
/// disk, and end if it is full.
const PART_KEPT: u64 = 20;
const MOST_KEPT: u64 = 1 << 30;

/// The bytes that may be taken between two checks of the disk. A check is a system call of about a microsecond.
const BETWEEN_LOOKS: u64 = 16 << 20;

/// Returns the free bytes of a directory's disk, without the host's part.
///
/// # Errors
/// An error of the system call.
pub fn spare_bytes(directory: &Path) -> io::Result<u64> {
    let disk = statvfs(directory)?;
    let unit = disk.f_frsize;
    Ok(spare_of(disk.f_blocks.saturating_mul(unit), disk.f_bavail.saturating_mul(unit)))
}

/// Returns the free bytes without the host's part, given the size of the disk.
fn spare_of(disk: u64, free: u64) -> u64 {
    free.saturating_sub((disk / PART_KEPT).min(MOST_KEPT))
}

/// A check of the disk's free space before writes, at intervals.
#[derive(Debug)]
pub(super) struct FreeSpace {
    root: Arc<OwnedFd>,
    /// The bytes that may be taken before the next check.
    seen: u64,
}

impl FreeSpace {
    /// Creates the check for a directory's disk.
    pub(super) fn new(root: Arc<OwnedFd>) -> Self {
        Self { root, seen: 0 }
    }

    /// Reserves bytes, or refuses them if the disk is full.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), ErrorCode> {
        if bytes > self.seen {
            let disk = fstatvfs(&self.root).map_err(super::beneath::code)?;
            self.look(
                bytes,
                disk.f_blocks.saturating_mul(disk.f_frsize),
                disk.f_bavail.saturating_mul(disk.f_frsize),
            );
        }
        self.seen = self.seen.checked_sub(bytes).ok_or(ErrorCode::InsufficientSpace)?;
        Ok(())
    }

    /// Updates the allowance from the disk's size and free bytes.
    fn look(&mut self, bytes: u64, disk: u64, free: u64) {
        self.seen = spare_of(disk, free).min(BETWEEN_LOOKS.max(bytes));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_part_of_the_disk_stays_the_hosts() {
        let mut free_space = FreeSpace::new(Arc::new(File::open("/").unwrap().into()));
        free_space.look(MIB, 100 * MIB, 6 * MIB);
        assert_eq!(free_space.seen, MIB);
        free_space.look(MIB, 100 * MIB, 5 * MIB);
        assert_eq!(free_space.seen, 0);
        // On a large disk, one gibibyte stays free, and the next check comes soon.
        free_space.look(MIB, 1 << 50, (1 << 30) + 100 * MIB);
        assert_eq!(free_space.seen, BETWEEN_LOOKS);
        free_space.look(200 * MIB, 1 << 50, (1 << 30) + 100 * MIB);
        assert_eq!(free_space.seen, 100 * MIB);
        assert_eq!(free_space.take(u64::MAX), Err(ErrorCode::InsufficientSpace));
        free_space.take(0).unwrap();
    }
}
