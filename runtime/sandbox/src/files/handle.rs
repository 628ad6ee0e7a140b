//! The table of a hook's open files and directories.

use std::{collections::BTreeMap, fs::File, sync::Arc, time::Duration};

use periapt_hook::HookContext;
use periapt_host_api::resource::RESOURCES;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, OpenFlags,
};

use super::{
    CharmFiles, StorageMount, disk,
    listing::{Gathering, Listing},
    path::{self, TreeTarget},
    stat::{self, kind},
    stream::Source,
    tree::{DirectoryId, Entry, MemoryFile, OpenFile, Quota, ROOT, Tree},
};
use crate::clock::HookClock;

/// The most open handles of a hook. A handle to a charm's file takes a descriptor of the process, which has
/// a few thousand for all hooks in flight.
const MAX_HANDLES: usize = 64;

/// The tree of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mount {
    Charm,
    Tmp,
    Resources,
}

/// The presence of `/resources` in a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourcesMount {
    /// The charm declares no resources.
    Absent,
    /// The charm declares resources. The directory fills as the hook requests them.
    Present,
}

impl ResourcesMount {
    /// Returns the presence in a hook of this context.
    pub fn of(context: &HookContext) -> Self {
        if context.has_resources() { Self::Present } else { Self::Absent }
    }
}

/// An open file or directory.
#[derive(Debug, Clone)]
pub(super) enum Handle {
    Directory { mount: Mount, id: DirectoryId },
    File { source: Source, number: u64, writable: bool },
    Stored(Arc<disk::Directory>),
}

/// A hook's files.
#[derive(Debug)]
pub(crate) struct Files {
    charm: CharmFiles,
    tmp: Tree,
    pub(super) resources: Tree,
    shows: ResourcesMount,
    storage: Vec<StorageMount>,
    quota: Arc<Quota>,
    handles: BTreeMap<u32, Handle>,
    listings: BTreeMap<u32, Listing>,
    next: u32,
    /// A reference that each open host file holds. A stream keeps its file open after the handle closes.
    pub(super) open_files: Arc<()>,
    /// The next number for a file in `/tmp`. Numbers are not reused.
    next_file: u64,
    pub(super) clock: Arc<HookClock>,
}

impl Files {
    pub(crate) fn new(charm: CharmFiles, bytes: u64, files: u64, clock: Arc<HookClock>) -> Self {
        Self {
            charm,
            tmp: Tree::new(clock.time_of_day()),
            resources: Tree::new(Duration::ZERO),
            shows: ResourcesMount::Absent,
            storage: Vec::new(),
            quota: Quota::new(bytes, files),
            handles: BTreeMap::new(),
            listings: BTreeMap::new(),
            next: 0,
            open_files: Arc::new(()),
            next_file: 1,
            clock,
        }
    }

    /// Adds the unit's storage.
    pub(crate) fn with_storage(self, storage: Vec<StorageMount>) -> Self {
        let files = Self { storage, ..self };
        files.make_mount_points();
        files
    }

    /// Returns the unit's storage.
    pub(super) fn storage(&self) -> &[StorageMount] {
        &self.storage
    }

    /// Sets the presence of `/resources`.
    pub(crate) fn with_resources(self, shows: ResourcesMount) -> Self {
        Self { shows, ..self }
    }

    /// Returns true if the hook has `/resources`.
    pub(super) fn has_resources(&self) -> bool {
        self.shows == ResourcesMount::Present
    }

    /// Opens the preopened directories. Returns their numbers and paths.
    pub(super) fn preopened(&mut self) -> Result<Vec<(u32, String)>, ErrorCode> {
        let charm = self.open(Handle::Directory { mount: Mount::Charm, id: ROOT })?;
        let tmp = self.open(Handle::Directory { mount: Mount::Tmp, id: ROOT })?;
        let mut directories = vec![(charm, "/charm".to_owned()), (tmp, "/tmp".to_owned())];
        if self.has_resources() {
            let resources = self.open(Handle::Directory { mount: Mount::Resources, id: ROOT })?;
            directories.push((resources, RESOURCES.to_owned()));
        }
        for mount in self.storage.clone() {
            let root = Arc::new(disk::Directory::root(&mount)?);
            directories.push((self.open(Handle::Stored(root))?, mount.location));
        }
        Ok(directories)
    }

    pub(super) fn open(&mut self, handle: Handle) -> Result<u32, ErrorCode> {
        let number = self.number()?;
        self.handles.insert(number, handle);
        Ok(number)
    }

    pub(super) fn open_listing(&mut self, listing: Listing) -> Result<u32, ErrorCode> {
        let number = self.number()?;
        self.listings.insert(number, listing);
        Ok(number)
    }

    /// Checks the limit on handles for one more.
    pub(super) fn has_room(&self) -> Result<(), ErrorCode> {
        match self.handles.len() + self.listings.len() < MAX_HANDLES {
            true => Ok(()),
            false => Err(ErrorCode::InsufficientMemory),
        }
    }

    fn number(&mut self) -> Result<u32, ErrorCode> {
        self.has_room()?;
        self.next = self.next.checked_add(1).ok_or(ErrorCode::InsufficientMemory)?;
        Ok(self.next)
    }

    pub(super) fn close(&mut self, number: u32) {
        self.handles.remove(&number);
    }

    /// Closes a listing. Returns its host memory, in bytes.
    pub(super) fn close_listing(&mut self, number: u32) -> u64 {
        self.listings.remove(&number).map_or(0, |listing| listing.bytes())
    }

    pub(super) fn handle(&self, number: u32) -> Result<&Handle, ErrorCode> {
        self.handles.get(&number).ok_or(ErrorCode::BadDescriptor)
    }

    pub(super) fn listing(&mut self, number: u32) -> Result<&mut Listing, ErrorCode> {
        self.listings.get_mut(&number).ok_or(ErrorCode::BadDescriptor)
    }

    pub(super) fn directory(&self, number: u32) -> Result<(Mount, DirectoryId), ErrorCode> {
        match self.handle(number)? {
            Handle::Directory { mount, id } => Ok((*mount, *id)),
            // Callers handle directories of storage before.
            Handle::File { .. } | Handle::Stored(_) => Err(ErrorCode::NotDirectory),
        }
    }

    /// Returns a directory of `/tmp`; the other trees are read-only.
    pub(super) fn own_directory(&self, number: u32) -> Result<DirectoryId, ErrorCode> {
        match self.directory(number)? {
            (Mount::Tmp, id) => Ok(id),
            (Mount::Charm | Mount::Resources, _) => Err(ErrorCode::ReadOnly),
        }
    }

    /// Returns a file of `/tmp` or of storage that is open for writing.
    pub(super) fn writable(&self, number: u32) -> Result<&Source, ErrorCode> {
        match self.handle(number)? {
            Handle::File { source, writable: true, .. } => Ok(source),
            Handle::File { .. } => Err(ErrorCode::NotPermitted),
            Handle::Directory { .. } | Handle::Stored(_) => Err(ErrorCode::IsDirectory),
        }
    }

    pub(super) fn readable(&self, number: u32) -> Result<&Source, ErrorCode> {
        match self.handle(number)? {
            Handle::File { source, .. } => Ok(source),
            Handle::Directory { .. } | Handle::Stored(_) => Err(ErrorCode::IsDirectory),
        }
    }

    pub(super) fn tree(&self, mount: Mount) -> &Tree {
        match mount {
            Mount::Charm => &self.charm.tree,
            Mount::Tmp => &self.tmp,
            Mount::Resources => &self.resources,
        }
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.time_of_day()
    }

    /// Looks up a path from a directory handle.
    pub(super) fn find(&self, number: u32, path: &str) -> Result<(Mount, Entry), ErrorCode> {
        let (mount, base) = self.directory(number)?;
        Ok((mount, path::find(self.tree(mount), base, path)?))
    }

    /// Opens an entry, or creates a file if `how` says so.
    pub(super) fn open_at(
        &mut self,
        number: u32,
        path: &str,
        how: OpenFlags,
        access: DescriptorFlags,
    ) -> Result<u32, ErrorCode> {
        if let Some((directory, path)) = self.stored_at(number, path)? {
            return self.open_stored(&directory, path, how, access);
        }
        let (mount, base) = self.directory(number)?;
        let changes = access.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY)
            || how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE);
        if mount != Mount::Tmp && changes {
            return Err(ErrorCode::ReadOnly);
        }
        let entry = match path::find(self.tree(mount), base, path) {
            Ok(_) if how.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) => return Err(ErrorCode::Exist),
            Err(ErrorCode::NoEntry)
                if how.contains(OpenFlags::CREATE) && !how.contains(OpenFlags::DIRECTORY) =>
            {
                self.create(base, path)?
            }
            found => found?,
        };
        if how.contains(OpenFlags::DIRECTORY) && !matches!(entry, Entry::Directory(_)) {
            return Err(ErrorCode::NotDirectory);
        }
        let writable = access.contains(DescriptorFlags::WRITE);
        let handle = match entry {
            Entry::Directory(_) if writable || how.contains(OpenFlags::TRUNCATE) => {
                return Err(ErrorCode::IsDirectory);
            }
            Entry::Directory(id) => Handle::Directory { mount, id },
            Entry::Memory(file) => {
                if how.contains(OpenFlags::TRUNCATE) {
                    file.resize(0, self.now())?;
                }
                Handle::File { number: file.number, source: Source::Memory(file), writable }
            }
            Entry::Disk(entry) => {
                let counted = self.descriptor()?;
                let file = File::open(&entry.path).map_err(|_| ErrorCode::Io)?;
                let open = OpenFile { file, _counted: counted };
                Handle::File { number: entry.number, source: Source::Disk(Arc::new(open)), writable }
            }
            Entry::Held(open, number) => Handle::File { number, source: Source::Disk(open), writable },
        };
        self.open(handle)
    }

    /// Returns a reference for one more open host file, within the limit.
    pub(super) fn descriptor(&self) -> Result<Arc<()>, ErrorCode> {
        match Arc::strong_count(&self.open_files) > MAX_HANDLES {
            true => Err(ErrorCode::InsufficientMemory),
            false => Ok(Arc::clone(&self.open_files)),
        }
    }

    fn create(&mut self, base: DirectoryId, path: &str) -> Result<Entry, ErrorCode> {
        let TreeTarget::Name { parent, name, must_be_directory: false } =
            path::resolve(&self.tmp, base, path)?
        else {
            return Err(ErrorCode::IsDirectory);
        };
        self.quota.take_file()?;
        // From here, dropping the file returns its quota.
        let file = MemoryFile::new(self.next_file, &self.quota, self.now());
        self.next_file += 1;
        let now = self.now();
        self.tmp.insert(parent, name, Entry::Memory(Arc::clone(&file)), now)?;
        Ok(Entry::Memory(file))
    }

    pub(super) fn create_directory(&mut self, number: u32, path: &str) -> Result<(), ErrorCode> {
        if let Some((directory, path)) = self.stored_at(number, path)? {
            return directory.create_directory(path, self.now());
        }
        let base = self.own_directory(number)?;
        let TreeTarget::Name { parent, name, .. } = path::resolve(&self.tmp, base, path)? else {
            return Err(ErrorCode::Exist);
        };
        self.quota.take_file()?;
        let now = self.now();
        let made = self.tmp.make_directory(parent, name, now);
        if made.is_err() {
            self.quota.give_file();
        }
        made.map(|_| ())
    }

    pub(super) fn remove_directory(&mut self, number: u32, path: &str) -> Result<(), ErrorCode> {
        if let Some((directory, path)) = self.stored_at(number, path)? {
            return directory.remove_directory(path, self.now());
        }
        let base = self.own_directory(number)?;
        let TreeTarget::Name { parent, name, .. } = path::resolve(&self.tmp, base, path)? else {
            return Err(ErrorCode::Invalid);
        };
        match self.tmp.directory(parent)?.entries.get(name) {
            Some(Entry::Directory(_)) => {}
            Some(_) => return Err(ErrorCode::NotDirectory),
            None => return Err(ErrorCode::NoEntry),
        }
        let now = self.now();
        self.tmp.remove(parent, name, now)?;
        self.quota.give_file();
        Ok(())
    }

    pub(super) fn unlink(&mut self, number: u32, path: &str) -> Result<(), ErrorCode> {
        if let Some((directory, path)) = self.stored_at(number, path)? {
            return directory.unlink(path, self.now());
        }
        let base = self.own_directory(number)?;
        let TreeTarget::Name { parent, name, must_be_directory } = path::resolve(&self.tmp, base, path)?
        else {
            return Err(ErrorCode::IsDirectory);
        };
        match self.tmp.directory(parent)?.entries.get(name) {
            Some(Entry::Directory(_)) => return Err(ErrorCode::IsDirectory),
            Some(_) if must_be_directory => return Err(ErrorCode::NotDirectory),
            Some(_) => {}
            None => return Err(ErrorCode::NoEntry),
        }
        let now = self.now();
        self.tmp.remove(parent, name, now)?;
        Ok(())
    }

    /// Renames an entry and replaces the target as in POSIX.
    pub(super) fn rename(&mut self, from: (u32, &str), to: (u32, &str)) -> Result<(), ErrorCode> {
        match (self.stored_at(from.0, from.1)?, self.stored_at(to.0, to.1)?) {
            (Some((from, old)), Some((to, new))) => return from.rename(old, &to, new, self.now()),
            (None, None) => {}
            _ => return Err(ErrorCode::CrossDevice),
        }
        let place = |files: &Self, (number, path): (u32, &str)| {
            let base = files.own_directory(number)?;
            match path::resolve(&files.tmp, base, path)? {
                TreeTarget::Name { parent, name, .. } => Ok((parent, name.to_owned())),
                TreeTarget::Directory(_) => Err(ErrorCode::Invalid),
            }
        };
        let (from, old) = place(self, from)?;
        let (to, new) = place(self, to)?;
        let moved = self.tmp.directory(from)?.entries.get(old.as_str()).cloned().ok_or(ErrorCode::NoEntry)?;
        if (from, &old) == (to, &new) {
            return Ok(());
        }
        let now = self.now();
        let replaced = self.tmp.directory(to)?.entries.get(new.as_str()).cloned();
        match (&moved, &replaced) {
            (_, None) => {}
            (Entry::Directory(_), Some(Entry::Directory(_))) => {
                self.tmp.remove(to, &new, now)?;
                self.quota.give_file();
            }
            (Entry::Directory(_), Some(_)) => return Err(ErrorCode::NotDirectory),
            (_, Some(Entry::Directory(_))) => return Err(ErrorCode::IsDirectory),
            (_, Some(_)) => {
                self.tmp.remove(to, &new, now)?;
            }
        }
        self.tmp.rename((from, &old), (to, &new), now)
    }

    /// Lists a directory outside of storage.
    pub(super) fn list(&self, number: u32, mut gathering: Gathering) -> Result<Listing, ErrorCode> {
        let (mount, id) = self.directory(number)?;
        for (name, entry) in &self.tree(mount).directory(id)?.entries {
            gathering.add(kind(entry), Arc::clone(name))?;
        }
        Ok(gathering.sorted())
    }

    /// Returns the metadata of an entry.
    pub(super) fn stat(&self, mount: Mount, entry: &Entry) -> Result<DescriptorStat, ErrorCode> {
        let (size, modified, accessed) = match entry {
            Entry::Directory(id) => {
                let changed = self.tree(mount).directory(*id)?.changed;
                (0, changed, changed)
            }
            Entry::Memory(file) => {
                let size = file.size();
                let content = file.content();
                (size, content.modified, content.accessed)
            }
            Entry::Disk(file) => (file.size, Duration::ZERO, Duration::ZERO),
            Entry::Held(open, _) => {
                let size = open.file.metadata().map_err(|_| ErrorCode::Io)?.len();
                (size, Duration::ZERO, Duration::ZERO)
            }
        };
        Ok(stat::of(kind(entry), size, modified, accessed))
    }

    /// Returns the metadata of a handle's target.
    pub(super) fn stat_handle(&self, number: u32) -> Result<DescriptorStat, ErrorCode> {
        match self.handle(number)? {
            Handle::Directory { mount, id } => self.stat(*mount, &Entry::Directory(*id)),
            Handle::File { source: Source::Memory(file), .. } => {
                self.stat(Mount::Tmp, &Entry::Memory(Arc::clone(file)))
            }
            Handle::Stored(directory) => Ok(stat::of_stored(&directory.stat()?)),
            Handle::File { source: Source::Stored(file), .. } => Ok(stat::of_stored(&file.stat()?)),
            Handle::File { source: Source::Disk(open), .. } => {
                let size = open.file.metadata().map_err(|_| ErrorCode::Io)?.len();
                Ok(stat::of(DescriptorType::RegularFile, size, Duration::ZERO, Duration::ZERO))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_has_few_descriptors_however_it_keeps_them_open() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a"), "a").unwrap();
        let charm = CharmFiles::scan(directory.path()).unwrap();
        let clock = Arc::new(HookClock::new(periapt_host_api::Timestamp::UNIX_EPOCH, 0));
        let mut files = Files::new(charm, 0, 0, clock);
        let (root, _) = files.preopened().unwrap()[0];
        let mut open = || {
            let number = files.open_at(root, "a", OpenFlags::empty(), DescriptorFlags::READ)?;
            // A stream may outlive its handle.
            let source = files.readable(number).unwrap().clone();
            files.close(number);
            Ok::<_, ErrorCode>(source)
        };
        let mut streams: Vec<_> = (0..MAX_HANDLES).map(|_| open().unwrap()).collect();
        assert_eq!(open().unwrap_err(), ErrorCode::InsufficientMemory);
        streams.pop();
        assert_eq!(open().unwrap().read(0, 10).unwrap(), b"a");
    }
}
