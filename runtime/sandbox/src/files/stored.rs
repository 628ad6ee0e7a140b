//! The operations of a hook on its storage.

use std::{sync::Arc, time::Duration};

use rustix::fs::Stat;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, MetadataHashValue, OpenFlags,
};

use super::{
    Files,
    disk::{Directory, Opened, kind},
    handle::{self, Handle},
    stream::Source,
};

/// A mark in the identities of stored files, which keeps them apart from those of the other trees.
const STORED: u64 = 5;

impl Files {
    /// Returns the directory of storage of a handle; none if the handle is of another kind.
    pub(super) fn stored(&self, number: u32) -> Result<Option<Arc<Directory>>, ErrorCode> {
        Ok(match self.handle(number)? {
            Handle::Stored(directory) => Some(Arc::clone(directory)),
            Handle::Directory { .. } | Handle::File { .. } => None,
        })
    }

    /// Returns the error that comes before "unsupported" for creating a link, if any.
    pub(super) fn may_link(&self, number: u32) -> Result<(), ErrorCode> {
        match self.stored(number)? {
            Some(directory) if directory.is_read_only() => Err(ErrorCode::ReadOnly),
            Some(_) => Ok(()),
            None => self.own_directory(number).map(|_| ()),
        }
    }

    pub(super) fn open_stored(
        &mut self,
        directory: &Directory,
        path: &str,
        how: OpenFlags,
        access: DescriptorFlags,
    ) -> Result<u32, ErrorCode> {
        if directory.is_read_only() && access.contains(DescriptorFlags::MUTATE_DIRECTORY) {
            return Err(ErrorCode::ReadOnly);
        }
        let write = access.contains(DescriptorFlags::WRITE);
        let counted = self.descriptor()?;
        self.open(match directory.open_at(path, how, write, self.now(), counted)? {
            Opened::Directory(directory) => Handle::Stored(Arc::new(directory)),
            Opened::File(file) => {
                let number = file.identity();
                Handle::File { source: Source::Stored(Arc::new(file)), number, writable: write }
            }
        })
    }
}

/// Returns metadata with the hook's own times and without numbers of the host.
pub(super) fn stat(stat: &Stat) -> DescriptorStat {
    let time = |seconds: i64, nanoseconds: u64| {
        Duration::new(u64::try_from(seconds).unwrap_or(0), u32::try_from(nanoseconds).unwrap_or(0))
    };
    #[expect(clippy::useless_conversion, reason = "the types of these fields differ from target to target")]
    let (modified, accessed) = (
        time(stat.st_mtime.into(), stat.st_mtime_nsec.into()),
        time(stat.st_atime.into(), stat.st_atime_nsec.into()),
    );
    match kind(stat) {
        Some(DescriptorType::RegularFile) => {
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            handle::stat(DescriptorType::RegularFile, size, modified, accessed)
        }
        _ => handle::stat(DescriptorType::Directory, 0, modified, modified),
    }
}

/// Returns the metadata hash for an identity in storage.
pub(super) fn metadata_hash(identity: u64) -> MetadataHashValue {
    MetadataHashValue { lower: identity, upper: STORED }
}
