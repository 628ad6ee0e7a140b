//! The host functions of `wasi:filesystem`, over a hook's own files.

use std::{sync::Arc, time::Duration};

use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsError, FsResult,
    bindings::{
        clocks::wall_clock::Datetime,
        filesystem::{
            preopens,
            types::{
                self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
                DirectoryEntryStream, ErrorCode, Filesize, MetadataHashValue, NewTimestamp, OpenFlags,
                PathFlags,
            },
        },
    },
};

use super::{
    FilesView,
    handle::{Handle, Mount},
    listing::Gathering,
    stat,
    stream::{FileReader, FileWriter, Position, Source},
    tree::Entry,
};
use crate::{fuel::SYNC_FUEL, state::HookState};

/// The accessor from a store to its files, for the linker.
pub(crate) struct HasFiles;

impl HasData for HasFiles {
    type Data<'a> = FilesView<'a>;
}

/// Links `wasi:filesystem`.
pub(crate) fn link(linker: &mut Linker<HookState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasFiles>(linker, HookState::files)?;
    preopens::add_to_linker::<_, HasFiles>(linker, HookState::files)
}

impl FilesView<'_> {
    /// Counts a call and its bytes.
    fn call(&self, bytes: usize) -> FsResult<()> {
        self.meter.call(bytes as u64).map_err(FsError::trap)
    }

    fn metadata_hash_of(mount: Mount, entry: &Entry) -> MetadataHashValue {
        let (upper, lower) = match (mount, entry) {
            (Mount::Charm, Entry::Directory(id)) => (1, *id),
            (Mount::Tmp, Entry::Directory(id)) => (2, *id),
            (_, Entry::Disk(file)) => (3, file.number),
            (_, Entry::Memory(file)) => (4, file.number),
            (Mount::Resources, Entry::Directory(id)) => (6, *id),
            (_, Entry::Held(_, number)) => (3, *number),
        };
        MetadataHashValue { lower, upper }
    }

    fn metadata_hash_of_handle(&self, number: u32) -> Result<MetadataHashValue, ErrorCode> {
        Ok(match self.files.handle(number)? {
            Handle::Directory { mount, id } => Self::metadata_hash_of(*mount, &Entry::Directory(*id)),
            Handle::File { source: Source::Disk(_), number, .. } => {
                MetadataHashValue { lower: *number, upper: 3 }
            }
            Handle::File { source: Source::Memory(_), number, .. } => {
                MetadataHashValue { lower: *number, upper: 4 }
            }
            Handle::File { source: Source::Stored(_), number, .. } => stat::hash_of_stored(*number),
            Handle::Stored(directory) => stat::hash_of_stored(directory.identity_of(&directory.stat()?)),
        })
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        self.meter.call(0)?;
        let directories = self.files.preopened()?;
        Ok(directories.into_iter().map(|(number, path)| (Resource::new_own(number), path)).collect())
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(self.table.get(&error)?.downcast_ref::<ErrorCode>().copied())
    }
}

/// Converts a time that a guest sets.
fn new_time(time: NewTimestamp, now: Duration) -> Result<Option<Duration>, ErrorCode> {
    match time {
        NewTimestamp::NoChange => Ok(None),
        NewTimestamp::Now => Ok(Some(now)),
        NewTimestamp::Timestamp(Datetime { seconds, nanoseconds }) if nanoseconds < 1_000_000_000 => {
            Ok(Some(Duration::new(seconds, nanoseconds)))
        }
        NewTimestamp::Timestamp(_) => Err(ErrorCode::Invalid),
    }
}

impl types::HostDescriptor for FilesView<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.call(0)?;
        let source = self.files.readable(fd.rep())?.clone();
        let reader = FileReader { source, position: offset, meter: Arc::clone(self.meter) };
        let reader: DynInputStream = Box::new(reader);
        Ok(self.table.push(reader)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.writer(fd, Position::At(offset))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        self.writer(fd, Position::End)
    }

    async fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        _offset: Filesize,
        _length: Filesize,
        _advice: Advice,
    ) -> FsResult<()> {
        self.call(0)?;
        self.files.readable(fd.rep())?;
        Ok(())
    }

    async fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.sync(fd).await
    }

    async fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        self.call(0)?;
        // All other files end with the hook, so a sync does nothing.
        if let Handle::File { source: Source::Stored(file), .. } = self.files.handle(fd.rep())? {
            let file = Arc::clone(file);
            self.meter.work(SYNC_FUEL);
            let turn = Arc::clone(self.syncs).acquire_owned().await.map_err(|_| ErrorCode::Io)?;
            let sync = move || {
                // The permit lasts until the sync ends, even if the hook ends first.
                let _turn = turn;
                file.sync()
            };
            // A sync may take long, and this thread also runs other hooks.
            tokio::task::spawn_blocking(sync).await.map_err(|_| ErrorCode::Io)??;
        }
        Ok(())
    }

    async fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        self.call(0)?;
        Ok(match self.files.handle(fd.rep())? {
            Handle::Directory { mount: Mount::Charm | Mount::Resources, .. } => DescriptorFlags::READ,
            Handle::Stored(directory) if directory.is_read_only() => DescriptorFlags::READ,
            Handle::Directory { mount: Mount::Tmp, .. } | Handle::Stored(_) => {
                DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY
            }
            Handle::File { writable: true, .. } => DescriptorFlags::READ | DescriptorFlags::WRITE,
            Handle::File { writable: false, .. } => DescriptorFlags::READ,
        })
    }

    async fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        self.call(0)?;
        Ok(match self.files.handle(fd.rep())? {
            Handle::Directory { .. } | Handle::Stored(_) => DescriptorType::Directory,
            Handle::File { .. } => DescriptorType::RegularFile,
        })
    }

    async fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        self.call(0)?;
        let file = self.files.writable(fd.rep())?;
        let before = file.size()?;
        file.resize(size, self.files.now())?;
        // The host writes the zeros, so the hook pays for them.
        self.meter.bytes(size.saturating_sub(before));
        Ok(())
    }

    async fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.call(0)?;
        let now = self.files.now();
        let (accessed, modified) = (new_time(accessed, now)?, new_time(modified, now)?);
        Ok(self.files.writable(fd.rep())?.set_times(accessed, modified)?)
    }

    async fn read(
        &mut self,
        fd: Resource<Descriptor>,
        length: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = self.files.readable(fd.rep())?.read(offset, length)?;
        self.call(bytes.len())?;
        let at_end = bytes.is_empty() && length > 0;
        Ok((bytes, at_end))
    }

    async fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        self.call(bytes.len())?;
        self.files.writable(fd.rep())?.write(offset, &bytes, self.files.now())?;
        Ok(bytes.len() as u64)
    }

    async fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DirectoryEntryStream>> {
        self.call(0)?;
        self.files.has_room()?;
        let gathering = Gathering::new(self.meter, self.limiter.room());
        let listing = match self.files.stored(fd.rep())? {
            Some(directory) => {
                // Storage may have very many names, and this thread also runs other hooks.
                let listed = tokio::task::spawn_blocking(move || directory.list(gathering)).await;
                listed.map_err(|_| ErrorCode::Io)??
            }
            None => self.files.list(fd.rep(), gathering)?,
        };
        let bytes = listing.bytes();
        let number = self.files.open_listing(listing)?;
        self.limiter.hold(bytes);
        Ok(Resource::new_own(number))
    }

    async fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.call(path.len())?;
        Ok(self.files.create_directory(fd.rep(), &path)?)
    }

    async fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        self.call(0)?;
        Ok(self.files.stat_handle(fd.rep())?)
    }

    async fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        _flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        self.call(path.len())?;
        if let Some((directory, path)) = self.files.stored_at(fd.rep(), &path)? {
            return Ok(stat::of_stored(&directory.stat_at(path)?));
        }
        let (mount, entry) = self.files.find(fd.rep(), &path)?;
        Ok(self.files.stat(mount, &entry)?)
    }

    async fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        _flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        self.call(path.len())?;
        let now = self.files.now();
        let (accessed, modified) = (new_time(accessed, now)?, new_time(modified, now)?);
        if let Some((directory, path)) = self.files.stored_at(fd.rep(), &path)? {
            let counted = self.files.descriptor()?;
            return Ok(directory.set_times_at(path, accessed, modified, counted)?);
        }
        match self.files.find(fd.rep(), &path)? {
            (_, Entry::Memory(file)) => Ok(Source::Memory(file).set_times(accessed, modified)?),
            (Mount::Tmp, _) => Err(ErrorCode::Unsupported.into()),
            (Mount::Charm | Mount::Resources, _) => Err(ErrorCode::ReadOnly.into()),
        }
    }

    async fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        _flags: PathFlags,
        old: String,
        _to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        self.call(old.len() + new.len())?;
        // The sandbox supports no symbolic or hard links.
        self.files.may_link(fd.rep())?;
        Err(ErrorCode::Unsupported.into())
    }

    async fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        _flags: PathFlags,
        path: String,
        how: OpenFlags,
        access: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        self.call(path.len())?;
        Ok(Resource::new_own(self.files.open_at(fd.rep(), &path, how, access)?))
    }

    async fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.call(path.len())?;
        match self.files.stored_at(fd.rep(), &path)? {
            Some((directory, path)) => drop(directory.stat_at(path)?),
            None => drop(self.files.find(fd.rep(), &path)?),
        }
        Err(ErrorCode::Invalid.into())
    }

    async fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.call(path.len())?;
        Ok(self.files.remove_directory(fd.rep(), &path)?)
    }

    async fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old: String,
        to: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        self.call(old.len() + new.len())?;
        Ok(self.files.rename((fd.rep(), &old), (to.rep(), &new))?)
    }

    async fn symlink_at(&mut self, fd: Resource<Descriptor>, old: String, new: String) -> FsResult<()> {
        self.call(old.len() + new.len())?;
        self.files.may_link(fd.rep())?;
        Err(ErrorCode::Unsupported.into())
    }

    async fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.call(path.len())?;
        Ok(self.files.unlink(fd.rep(), &path)?)
    }

    async fn is_same_object(
        &mut self,
        one: Resource<Descriptor>,
        other: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        self.meter.call(0)?;
        let one = self.metadata_hash_of_handle(one.rep())?;
        let other = self.metadata_hash_of_handle(other.rep())?;
        Ok((one.upper, one.lower) == (other.upper, other.lower))
    }

    async fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        self.call(0)?;
        Ok(self.metadata_hash_of_handle(fd.rep())?)
    }

    async fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        _flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        self.call(path.len())?;
        if let Some((directory, path)) = self.files.stored_at(fd.rep(), &path)? {
            return Ok(stat::hash_of_stored(directory.identity_of(&directory.stat_at(path)?)));
        }
        let (mount, entry) = self.files.find(fd.rep(), &path)?;
        Ok(Self::metadata_hash_of(mount, &entry))
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.files.close(fd.rep());
        Ok(())
    }
}

impl FilesView<'_> {
    fn writer(
        &mut self,
        fd: Resource<Descriptor>,
        position: Position,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.call(0)?;
        let writer: DynOutputStream = Box::new(FileWriter {
            file: self.files.writable(fd.rep())?.clone(),
            position,
            clock: Arc::clone(&self.files.clock),
            meter: Arc::clone(self.meter),
        });
        Ok(self.table.push(writer)?)
    }
}

impl types::HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        self.call(0)?;
        let entry = self.files.listing(stream.rep())?.next();
        Ok(entry.map(|(type_, name)| DirectoryEntry { type_, name: name.as_ref().to_owned() }))
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        let bytes = self.files.close_listing(stream.rep());
        self.limiter.let_go(bytes);
        Ok(())
    }
}
