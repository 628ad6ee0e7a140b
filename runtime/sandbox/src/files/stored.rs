//! The operations of a hook on its storage.

use std::sync::Arc;

use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

use super::{
    Files,
    disk::{Directory, OpenMode, Opened},
    handle::Handle,
    stream::Source,
};

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
        let mode = if write { OpenMode::Write } else { OpenMode::Read };
        self.open(match directory.open_at(path, how, mode, self.now(), counted)? {
            Opened::Directory(directory) => Handle::Stored(Arc::new(directory)),
            Opened::File(file) => {
                let number = file.identity();
                Handle::File { source: Source::Stored(Arc::new(file)), number, writable: write }
            }
        })
    }
}
