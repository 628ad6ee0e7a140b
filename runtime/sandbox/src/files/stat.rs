//! The answers of `stat` for files and directories.

use std::time::Duration;

use rustix::fs::Stat;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorStat, DescriptorType, MetadataHashValue};

use super::{disk, tree::Entry};

/// Returns the kind of an entry.
pub(super) fn kind(entry: &Entry) -> DescriptorType {
    match entry {
        Entry::Directory(_) => DescriptorType::Directory,
        Entry::Memory(_) | Entry::Disk(_) | Entry::Held(..) => DescriptorType::RegularFile,
    }
}

pub(super) fn of(type_: DescriptorType, size: u64, modified: Duration, accessed: Duration) -> DescriptorStat {
    let datetime = |time: Duration| {
        Some(wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime {
            seconds: time.as_secs(),
            nanoseconds: time.subsec_nanos(),
        })
    };
    DescriptorStat {
        type_,
        link_count: 1,
        size,
        data_access_timestamp: datetime(accessed),
        data_modification_timestamp: datetime(modified),
        status_change_timestamp: datetime(modified),
    }
}

/// A mark in the identities of stored files, which keeps them apart from those of the other trees.
const STORED: u64 = 5;

/// Returns metadata with the hook's own times and without numbers of the host.
pub(super) fn of_stored(stat: &Stat) -> DescriptorStat {
    let time = |seconds: i64, nanoseconds: u64| {
        Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanoseconds).unwrap_or(0))
    };
    #[expect(clippy::useless_conversion, reason = "the types of these fields differ from target to target")]
    let (modified, accessed) = (
        time(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
        time(stat.st_atime.into(), stat.st_atime_nsec.into()),
    );
    match disk::kind(stat) {
        Some(DescriptorType::RegularFile) => {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            of(DescriptorType::RegularFile, size, modified, accessed)
        }
        _ => of(DescriptorType::Directory, 0, modified, modified),
    }
}

/// Returns the metadata hash for an identity in storage.
pub(super) fn hash_of_stored(identity: u64) -> MetadataHashValue {
    MetadataHashValue { lower: identity, upper: STORED }
}
