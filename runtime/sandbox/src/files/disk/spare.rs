//! What is left of the host's disk. Space is promised to storage, not set aside, so all of it together may be more than
//! the disk has: a part of the disk stays the host's, whatever is promised.

use std::{io, os::fd::OwnedFd, path::Path, sync::Arc};

use rustix::fs::{fstatvfs, statvfs};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Which part of a disk is left to the host: one in so many, and no more than [`MOST_KEPT`]. Controllers and agents write
/// there, and end when they cannot.
const PART_KEPT: u64 = 20;
const MOST_KEPT: u64 = 1 << 30;

/// How many bytes are taken between two looks at the disk: a look is a call of the system, and takes a microsecond.
const BETWEEN_LOOKS: u64 = 16 << 20;

/// How many bytes are free on the disk that a directory lies on, but for the host's part.
///
/// # Errors
/// The directory cannot be looked at.
pub fn spare_bytes(directory: &Path) -> io::Result<u64> {
    let disk = statvfs(directory)?;
    let unit = disk.f_frsize;
    Ok(spare_of(disk.f_blocks.saturating_mul(unit), disk.f_bavail.saturating_mul(unit)))
}

/// What is free of so many bytes without the host's part.
fn spare_of(disk: u64, free: u64) -> u64 {
    free.saturating_sub((disk / PART_KEPT).min(MOST_KEPT))
}

/// Looks at the disk now and then, before it is written.
#[derive(Debug)]
pub(super) struct Spare {
    root: Arc<OwnedFd>,
    /// How much may be taken before the next look.
    seen: u64,
}

impl Spare {
    /// Of the disk that a directory lies on.
    pub(super) fn new(root: Arc<OwnedFd>) -> Self {
        Self { root, seen: 0 }
    }

    /// Refuses what the disk has no room for.
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

    /// Sees how many bytes a disk has, and how many of them are free, before so many are taken.
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
        let mut spare = Spare::new(Arc::new(File::open("/").unwrap().into()));
        spare.look(MIB, 100 * MIB, 6 * MIB);
        assert_eq!(spare.seen, MIB);
        spare.look(MIB, 100 * MIB, 5 * MIB);
        assert_eq!(spare.seen, 0);
        // Of a large disk it is a gibibyte; and it is looked at again soon.
        spare.look(MIB, 1 << 50, (1 << 30) + 100 * MIB);
        assert_eq!(spare.seen, BETWEEN_LOOKS);
        spare.look(200 * MIB, 1 << 50, (1 << 30) + 100 * MIB);
        assert_eq!(spare.seen, 100 * MIB);
        assert_eq!(spare.take(u64::MAX), Err(ErrorCode::InsufficientSpace));
        spare.take(0).unwrap();
    }
}
