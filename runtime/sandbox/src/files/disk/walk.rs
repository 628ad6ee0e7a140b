//! A walk through a directory tree of any depth, without recursion and with two descriptors at a time.

use std::{
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat},
    io::Errno,
};

/// An entry of the tree. A directory comes after its content.
pub(super) enum WalkEntry<'a> {
    /// A file, a link or a special file, with its size and what it takes of the disk, in bytes.
    File { parent: BorrowedFd<'a>, name: &'a CStr, size: u64, disk: u64 },
    /// A directory.
    Directory { parent: BorrowedFd<'a>, name: &'a CStr },
}

/// Visits all entries of a directory, but not the directory itself.
pub(super) fn all(
    root: BorrowedFd<'_>,
    visit: impl FnMut(WalkEntry<'_>) -> io::Result<()>,
) -> io::Result<()> {
    up_to(u64::MAX, root, visit).map(drop)
}

/// Visits the entries of a directory as [`all`] does, and ends early once it has found more than `most` names. Returns true if
/// it has visited all.
pub(super) fn up_to(
    most: u64,
    root: BorrowedFd<'_>,
    mut visit: impl FnMut(WalkEntry<'_>) -> io::Result<()>,
) -> io::Result<bool> {
    let mut left = most;
    let mut here = open(root, c".")?;
    // The current path with the identity of each name's directory, and the directories that remain at each level.
    let mut path: Vec<(CString, (u64, u64))> = Vec::new();
    let Some(first) = look(&here, &mut left, &mut visit)? else { return Ok(false) };
    let mut waiting = vec![first];
    while let Some(level) = waiting.last_mut() {
        if let Some(name) = level.pop() {
            let above = identity(&here)?;
            here = match open(here.as_fd(), &name) {
                // A workload that has the storage, too, has removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            path.push((name, above));
            let Some(directories) = look(&here, &mut left, &mut visit)? else { return Ok(false) };
            waiting.push(directories);
        } else {
            waiting.pop();
            let Some((name, above)) = path.pop() else { break };
            here = openat(here.as_fd(), c"..", flags(), Mode::empty())?;
            // A workload that has the storage, too, may have moved the directory: its parent is another one now.
            if identity(&here)? != above {
                return Err(io::Error::other("a directory was moved while it was read"));
            }
            visit(WalkEntry::Directory { parent: here.as_fd(), name: &name })?;
        }
    }
    Ok(true)
}

/// Returns what tells a directory from others.
fn identity(directory: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = fstat(directory)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Removes an entry.
pub(super) fn remove(seen: &WalkEntry<'_>) -> io::Result<()> {
    let (parent, name, flags) = match seen {
        WalkEntry::File { parent, name, .. } => (parent, name, AtFlags::empty()),
        WalkEntry::Directory { parent, name } => (parent, name, AtFlags::REMOVEDIR),
    };
    Ok(unlinkat(parent, *name, flags)?)
}

fn flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn open(parent: BorrowedFd<'_>, name: &CStr) -> io::Result<OwnedFd> {
    Ok(openat(parent, name, flags(), Mode::empty())?)
}

/// Visits the files of one directory, and returns the names of its directories; none if more than `left` names are there. What is
/// there is taken from `left`.
fn look(
    directory: &OwnedFd,
    left: &mut u64,
    visit: &mut impl FnMut(WalkEntry<'_>) -> io::Result<()>,
) -> io::Result<Option<Vec<CString>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            let Some(rest) = left.checked_sub(1) else { return Ok(None) };
            *left = rest;
            names.push(entry.file_name().to_owned());
        }
    }
    let mut directories = Vec::new();
    for name in names {
        let stat = match statat(directory, name.as_c_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            directories.push(name);
        } else {
            let (size, disk) = (super::size_of(&stat), super::disk_of(&stat));
            visit(WalkEntry::File { parent: directory.as_fd(), name: &name, size, disk })?;
        }
    }
    Ok(Some(directories))
}
