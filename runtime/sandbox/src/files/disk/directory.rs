//! The directories of storage that a hook has open.

use std::{fs::File, os::fd::OwnedFd, sync::Arc, time::Duration};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, renameat, statat, unlinkat};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, ErrorCode, OpenFlags};

use super::{
    super::{
        listing::{Gathering, Listing},
        path::joined,
    },
    BLOCK, StorageMount, StoredFile,
    beneath::{self, DiskTarget, code},
    file::identity,
    price, size_of,
};

/// An open directory. A directory that was removed while open is empty, and accepts no new entries.
#[derive(Debug)]
pub(in crate::files) struct Directory {
    mount: StorageMount,
    /// The absolute path in the hook at the time of opening.
    place: String,
    fd: OwnedFd,
}

/// The use of a file that is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::files) enum OpenMode {
    Read,
    Write,
}

/// The result of opening a path.
pub(in crate::files) enum Opened {
    Directory(Directory),
    File(StoredFile),
}

impl Directory {
    /// Opens the root of a mount.
    pub(in crate::files) fn root(mount: &StorageMount) -> Result<Self, ErrorCode> {
        let fd = mount.filesystem.root.try_clone().map_err(|_| ErrorCode::InsufficientMemory)?;
        Ok(Self { mount: mount.clone(), place: mount.location.clone(), fd })
    }

    /// Returns the absolute path in the hook.
    pub(in crate::files) fn place(&self) -> &str {
        &self.place
    }

    /// Returns a directory beneath this one; `path` is the path of its look-up.
    fn beneath(&self, path: &str, fd: OwnedFd) -> Opened {
        Opened::Directory(Self { mount: self.mount.clone(), place: joined(&self.place, path), fd })
    }

    pub(in crate::files) fn is_read_only(&self) -> bool {
        self.mount.read_only
    }

    fn check_writable(&self) -> Result<(), ErrorCode> {
        if self.mount.read_only { Err(ErrorCode::ReadOnly) } else { Ok(()) }
    }

    /// Opens an entry, or creates a file if `how` says so. An open file keeps `counted`.
    pub(in crate::files) fn open_at(
        &self,
        path: &str,
        how: OpenFlags,
        mode: OpenMode,
        now: Duration,
        counted: Arc<()>,
    ) -> Result<Opened, ErrorCode> {
        if mode == OpenMode::Write || how.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE) {
            self.check_writable()?;
        }
        let mode = if how.contains(OpenFlags::TRUNCATE) { OpenMode::Write } else { mode };
        let (parent, name) = match beneath::resolve(&self.fd, path)? {
            DiskTarget::Directory(_) if how.contains(OpenFlags::EXCLUSIVE) => return Err(ErrorCode::Exist),
            DiskTarget::Directory(_) if mode == OpenMode::Write => return Err(ErrorCode::IsDirectory),
            DiskTarget::Directory(fd) => return Ok(self.beneath(path, fd)),
            DiskTarget::Name { parent, name, must_be_directory } => {
                if how.contains(OpenFlags::DIRECTORY) || must_be_directory {
                    return self.open_directory(path, &parent, name, mode);
                }
                (parent, name)
            }
        };
        match stat_name(&parent, name) {
            Ok(_) if how.contains(OpenFlags::CREATE | OpenFlags::EXCLUSIVE) => Err(ErrorCode::Exist),
            Ok(stat) => match kind(&stat) {
                Some(DescriptorType::Directory) => self.open_directory(path, &parent, name, mode),
                Some(_) => {
                    let file = self.open_file(&parent, name, OFlags::empty(), counted)?;
                    if how.contains(OpenFlags::TRUNCATE) {
                        file.resize(0, now)?;
                    }
                    Ok(Opened::File(file))
                }
                // A link, a pipe or a device. No hook creates these, so hooks may not open them.
                None => Err(ErrorCode::NotPermitted),
            },
            Err(ErrorCode::NoEntry) if how.contains(OpenFlags::CREATE) => {
                self.mount.filesystem.count().take(price(0), 1)?;
                let made = self.open_file(&parent, name, OFlags::CREATE | OFlags::EXCL, counted);
                let file = made.inspect_err(|_| self.mount.filesystem.count().give(price(0), 1))?;
                file.set_times(Some(now), Some(now))?;
                touch(&parent, now);
                Ok(Opened::File(file))
            }
            Err(error) => Err(error),
        }
    }

    fn open_directory(
        &self,
        path: &str,
        parent: &OwnedFd,
        name: &str,
        mode: OpenMode,
    ) -> Result<Opened, ErrorCode> {
        let fd = beneath::directory(parent, name)?;
        match mode {
            OpenMode::Write => Err(ErrorCode::IsDirectory),
            OpenMode::Read => Ok(self.beneath(path, fd)),
        }
    }

    fn open_file(
        &self,
        parent: &OwnedFd,
        name: &str,
        more: OFlags,
        counted: Arc<()>,
    ) -> Result<StoredFile, ErrorCode> {
        let access = if self.mount.read_only { OFlags::RDONLY } else { OFlags::RDWR };
        // NONBLOCK: opening a pipe must not wait for its other end. NOATIME: reading must not change times.
        let flags = access | more | OFlags::NONBLOCK | OFlags::NOATIME;
        let mode = if more.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
        let file = File::from(beneath::open(parent, name, flags, mode)?);
        let stat = fstat(&file).map_err(code)?;
        if kind(&stat) != Some(DescriptorType::RegularFile) {
            return Err(ErrorCode::NotPermitted);
        }
        Ok(StoredFile::new(&self.mount.filesystem, file, stat.st_ino, counted))
    }

    pub(in crate::files) fn create_directory(&self, path: &str, now: Duration) -> Result<(), ErrorCode> {
        self.check_writable()?;
        let DiskTarget::Name { parent, name, .. } = beneath::resolve(&self.fd, path)? else {
            return Err(ErrorCode::Exist);
        };
        let mut count = self.mount.filesystem.count();
        count.take(BLOCK, 1)?;
        if let Err(error) = mkdirat(&parent, name, Mode::RWXU) {
            count.give(BLOCK, 1);
            return Err(code(error));
        }
        drop(count);
        beneath::set_times(beneath::directory(&parent, name)?, Some(now), Some(now))?;
        touch(&parent, now);
        Ok(())
    }

    pub(in crate::files) fn remove_directory(&self, path: &str, now: Duration) -> Result<(), ErrorCode> {
        self.check_writable()?;
        let DiskTarget::Name { parent, name, .. } = beneath::resolve(&self.fd, path)? else {
            return Err(ErrorCode::Invalid);
        };
        let mut count = self.mount.filesystem.count();
        unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(code)?;
        count.give(BLOCK, 1);
        touch(&parent, now);
        Ok(())
    }

    pub(in crate::files) fn unlink(&self, path: &str, now: Duration) -> Result<(), ErrorCode> {
        self.check_writable()?;
        let DiskTarget::Name { parent, name, must_be_directory } = beneath::resolve(&self.fd, path)? else {
            return Err(ErrorCode::IsDirectory);
        };
        let mut count = self.mount.filesystem.count();
        let stat = stat_name(&parent, name)?;
        match kind(&stat) {
            Some(DescriptorType::Directory) => return Err(ErrorCode::IsDirectory),
            _ if must_be_directory => return Err(ErrorCode::NotDirectory),
            _ => {}
        }
        unlinkat(&parent, name, AtFlags::empty()).map_err(code)?;
        count.unnamed(stat.st_ino, size_of(&stat));
        touch(&parent, now);
        Ok(())
    }

    /// Renames an entry within one filesystem, and replaces the target as in POSIX.
    pub(in crate::files) fn rename(
        &self,
        old: &str,
        other: &Self,
        new: &str,
        now: Duration,
    ) -> Result<(), ErrorCode> {
        self.check_writable()?;
        other.check_writable()?;
        if !Arc::ptr_eq(&self.mount.filesystem, &other.mount.filesystem) {
            return Err(ErrorCode::CrossDevice);
        }
        let name = |place| match place {
            DiskTarget::Name { parent, name, .. } => Ok((parent, name)),
            DiskTarget::Directory(_) => Err(ErrorCode::Invalid),
        };
        let (from, old) = name(beneath::resolve(&self.fd, old)?)?;
        let (to, new) = name(beneath::resolve(&other.fd, new)?)?;
        let mut count = self.mount.filesystem.count();
        let moved = stat_name(&from, old)?;
        let replaced = stat_name(&to, new).ok().filter(|stat| stat.st_ino != moved.st_ino);
        renameat(&from, old, &to, new).map_err(code)?;
        if let Some(replaced) = replaced {
            match kind(&replaced) {
                Some(DescriptorType::Directory) => count.give(BLOCK, 1),
                _ => count.unnamed(replaced.st_ino, size_of(&replaced)),
            }
        }
        touch(&from, now);
        touch(&to, now);
        Ok(())
    }

    /// Lists the directory, without special files, links and names that are not UTF-8.
    pub(in crate::files) fn list(&self, mut gathering: Gathering) -> Result<Listing, ErrorCode> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOATIME;
        let open = beneath::open(&self.fd, ".", flags, Mode::empty())?;
        for entry in Dir::read_from(open).map_err(code)? {
            let entry = entry.map_err(code)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if matches!(name, "." | "..") {
                continue;
            }
            let found = match entry.file_type() {
                FileType::Directory => Some(DescriptorType::Directory),
                FileType::RegularFile => Some(DescriptorType::RegularFile),
                FileType::Unknown => stat_name(&self.fd, name).ok().and_then(|stat| kind(&stat)),
                _ => None,
            };
            if let Some(kind) = found {
                gathering.add(kind, name)?;
            }
        }
        Ok(gathering.sorted())
    }

    pub(in crate::files) fn stat(&self) -> Result<Stat, ErrorCode> {
        fstat(&self.fd).map_err(code)
    }

    /// Returns the metadata of a path's target. Links and special files are refused.
    pub(in crate::files) fn stat_at(&self, path: &str) -> Result<Stat, ErrorCode> {
        let stat = match beneath::resolve(&self.fd, path)? {
            DiskTarget::Directory(fd) => fstat(fd).map_err(code)?,
            DiskTarget::Name { parent, name, must_be_directory } => {
                let stat = stat_name(&parent, name)?;
                if must_be_directory && kind(&stat) != Some(DescriptorType::Directory) {
                    return Err(ErrorCode::NotDirectory);
                }
                stat
            }
        };
        kind(&stat).map(|_| stat).ok_or(ErrorCode::NotPermitted)
    }

    pub(in crate::files) fn set_times_at(
        &self,
        path: &str,
        accessed: Option<Duration>,
        modified: Option<Duration>,
        counted: Arc<()>,
    ) -> Result<(), ErrorCode> {
        self.check_writable()?;
        match self.open_at(path, OpenFlags::empty(), OpenMode::Read, Duration::ZERO, counted)? {
            Opened::Directory(directory) => beneath::set_times(&directory.fd, accessed, modified),
            Opened::File(file) => file.set_times(accessed, modified),
        }
    }

    /// Returns an identity that all handles to one directory share.
    pub(in crate::files) fn identity_of(&self, stat: &Stat) -> u64 {
        identity(&self.mount.filesystem, stat.st_ino)
    }
}

fn stat_name(parent: &OwnedFd, name: &str) -> Result<Stat, ErrorCode> {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(code)
}

/// Returns the kind of an entry for guests; none for links and special files.
pub(in crate::files) fn kind(stat: &Stat) -> Option<DescriptorType> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Some(DescriptorType::Directory),
        FileType::RegularFile => Some(DescriptorType::RegularFile),
        _ => None,
    }
}

/// Sets a directory's times to the hook's time. On failure, the host's time stays, which is harmless.
fn touch(directory: &OwnedFd, now: Duration) {
    let _ = beneath::set_times(directory, Some(now), Some(now));
}
