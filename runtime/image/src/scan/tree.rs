//! A directory that a layer is written to. No path is followed through a link, and none leads out of it.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt as _},
    path::Path,
};

use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Timespec, Timestamps, XattrFlags,
        chmodat, fchmod, fsetxattr, futimens, linkat, makedev, mkdirat, mknodat, openat, openat2, statat,
        symlinkat, unlinkat, utimensat,
    },
    io::Errno,
    path::Arg,
};

use crate::table::{Below, name, parent};

/// Resolution that stays below a directory and follows nothing.
const BELOW: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// The mark of a directory that hides those of lower layers, for overlays that are mounted with `userxattr`, which users
/// without rights can do.
const OPAQUE: &str = "user.overlay.opaque";

/// An open directory, below which a layer is written.
#[derive(Debug)]
pub(crate) struct DiskTree {
    root: OwnedFd,
    /// The directory of the last entry. Neighbours follow each other.
    last: Option<(String, OwnedFd)>,
}

impl DiskTree {
    /// Opens an empty directory.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        Ok(Self { root: openat(CWD, directory, DIRECTORY, Mode::empty())?, last: None })
    }

    /// Returns the open directory that holds an entry.
    fn holding(&mut self, path: &str) -> io::Result<&OwnedFd> {
        let above = parent(path).unwrap_or_default();
        if above.is_empty() {
            return Ok(&self.root);
        }
        let cached = self.last.take().filter(|(last, _)| last == above);
        let opened = match cached {
            Some(opened) => opened,
            None => (above.to_owned(), openat2(&self.root, above, DIRECTORY, Mode::empty(), BELOW)?),
        };
        Ok(&self.last.insert(opened).1)
    }

    /// Makes a directory, unless it is there.
    pub(crate) fn directory(&mut self, path: &str) -> io::Result<()> {
        match mkdirat(self.holding(path)?, name(path), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a file.
    pub(crate) fn file(&mut self, path: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(self.holding(path)?, name(path), flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Gives a file its size with holes, its mode and its time.
    #[expect(clippy::unused_self, reason = "a file of this tree")]
    pub(crate) fn finish_file(&self, file: &File, size: u64, mode: u32, time: (i64, u32)) -> io::Result<()> {
        if file.metadata()?.len() != size {
            file.set_len(size)?;
        }
        fchmod(file, Mode::from_raw_mode(mode))?;
        Ok(futimens(file, &times(time))?)
    }

    /// Makes a symbolic link.
    pub(crate) fn link(&mut self, path: &str, target: &str, time: (i64, u32)) -> io::Result<()> {
        let holding = self.holding(path)?;
        symlinkat(target, holding, name(path))?;
        Ok(utimensat(holding, name(path), &times(time), AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Gives a file or link of this tree another name.
    pub(crate) fn hard_link(&mut self, of: &str, path: &str) -> io::Result<()> {
        let first = parent(of).filter(|above| !above.is_empty());
        let first =
            first.map(|above| openat2(&self.root, above, DIRECTORY, Mode::empty(), BELOW)).transpose()?;
        let root = self.root.try_clone()?;
        let holding = self.holding(path)?;
        Ok(linkat(first.as_ref().unwrap_or(&root), name(of), holding, name(path), AtFlags::empty())?)
    }

    /// Marks a path as gone, by a character device with the number 0, which users without rights may make.
    pub(crate) fn whiteout(&mut self, path: &str) -> io::Result<()> {
        let nothing = makedev(0, 0);
        Ok(mknodat(self.holding(path)?, name(path), FileType::CharacterDevice, Mode::empty(), nothing)?)
    }

    /// Gives a directory its mode, time and mark.
    pub(crate) fn finish_directory(
        &mut self,
        path: &str,
        mode: u32,
        time: (i64, u32),
        below: Below,
    ) -> io::Result<()> {
        let opened = match path {
            "" => None,
            path => Some(openat2(&self.root, path, DIRECTORY, Mode::empty(), BELOW)?),
        };
        let directory = opened.as_ref().unwrap_or(&self.root);
        if below == Below::Hidden {
            fsetxattr(directory, OPAQUE, b"y", XattrFlags::empty())?;
        }
        // The mark counts with the owner's right to write.
        fchmod(directory, Mode::from_raw_mode(mode))?;
        Ok(futimens(directory, &times(time))?)
    }

    /// Opens a file of this tree to read it.
    pub(crate) fn read(&mut self, path: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        Ok(openat(self.holding(path)?, name(path), flags, Mode::empty())?.into())
    }

    /// Writes everything to the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.root)?)
    }
}

/// Writes bytes of a file at an offset.
pub(crate) fn write_at(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

fn times((seconds, nanos): (i64, u32)) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: i64::from(nanos) };
    Timestamps { last_access: time, last_modification: time }
}

/// Checks that a file system keeps what overlays need. It leaves nothing.
pub(super) fn check_file_system(directory: &Path) -> Result<(), String> {
    let probe = tempfile::Builder::new().prefix(".probe-").tempdir_in(directory);
    let probe = probe.map_err(|error| format!("nothing can be made in it: {error}"))?;
    let mut tree = DiskTree::open(probe.path()).map_err(|error| error.to_string())?;
    tree.whiteout("gone")
        .map_err(|error| format!("its file system takes no whiteouts of overlays: {error}"))?;
    fsetxattr(&tree.root, OPAQUE, b"y", XattrFlags::empty())
        .map_err(|error| format!("its file system takes no extended attributes of users: {error}"))
}

/// Removes a directory with all that is in it, whatever its modes. No link is followed.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    let (Some(above), Some(name)) = (directory.parent(), directory.file_name()) else {
        return Err(io::Error::other("this is no directory that can be removed"));
    };
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let above = openat(CWD, above, DIRECTORY, Mode::empty())?;
    match opened(&above, name) {
        Ok(directory) => empty(directory)?,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    Ok(unlinkat(&above, name, AtFlags::REMOVEDIR)?)
}

/// Opens a directory to remove what is in it. Its mode may forbid that to its owner.
fn opened(above: &OwnedFd, name: impl Arg + Copy) -> Result<OwnedFd, Errno> {
    match openat(above, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => {
            // Changing the mode would follow a link.
            let status = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
            if FileType::from_raw_mode(status.st_mode) != FileType::Directory {
                return Err(Errno::NOTDIR);
            }
            chmodat(above, name, Mode::RWXU, AtFlags::empty())?;
            openat(above, name, DIRECTORY, Mode::empty())
        }
        other => other,
    }
}

/// Removes what is in a directory. The depth is bounded by that of the paths that were written.
fn empty(directory: OwnedFd) -> io::Result<()> {
    fchmod(&directory, Mode::RWXU)?;
    let mut names = Vec::new();
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut listing = RawDir::new(&directory, buffer.spare_capacity_mut());
    while let Some(entry) = listing.next() {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    for name in names {
        match unlinkat(&directory, &name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                empty(opened(&directory, name.as_c_str())?)?;
                unlinkat(&directory, &name, AtFlags::REMOVEDIR)?;
            }
            other => other?,
        }
    }
    Ok(())
}
