//! The look-up of a guest's paths on the host's disk.

use std::{os::fd::OwnedFd, time::Duration};

use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, ResolveFlags, Timespec, Timestamps, futimens, openat2},
    io::Errno,
};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

use super::super::path::{MAX_NAME, MAX_PATH};

/// The most attempts at a look-up that a concurrent rename disturbs.
const TRIES: usize = 8;

/// The target of a path.
#[derive(Debug)]
pub(super) enum DiskTarget<'a> {
    /// An existing directory: the start of the look-up, or one that the path names by a final `.` or `..`.
    Directory(OwnedFd),
    /// A name in a directory. It may be free or taken.
    Name { parent: OwnedFd, name: &'a str, must_be_directory: bool },
}

/// Resolves a path up to the directory of its last name.
pub(super) fn resolve(base: impl AsFd, path: &str) -> Result<DiskTarget<'_>, ErrorCode> {
    check(path)?;
    let trimmed = path.trim_end_matches('/');
    let (before, name) = trimmed.rsplit_once('/').unwrap_or(("", trimmed));
    if matches!(name, "" | "." | "..") {
        return Ok(DiskTarget::Directory(directory(base, path)?));
    }
    let parent = directory(base, if before.is_empty() { "." } else { before })?;
    Ok(DiskTarget::Name { parent, name, must_be_directory: trimmed.len() < path.len() })
}

/// Opens a directory beneath another.
pub(super) fn directory(base: impl AsFd, path: &str) -> Result<OwnedFd, ErrorCode> {
    open(base, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
}

/// Opens an entry beneath a directory. The kernel refuses `..`, links and mounts that lead out.
pub(super) fn open(base: impl AsFd, path: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, ErrorCode> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let mut flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    for _ in 0..TRIES {
        match openat2(base.as_fd(), path, flags, mode, resolve) {
            // Of files that belong to a user of a workload, the time of access cannot be kept.
            Err(Errno::PERM) if flags.contains(OFlags::NOATIME) => flags.remove(OFlags::NOATIME),
            // A process of the host renamed something during the look-up.
            Err(Errno::AGAIN | Errno::INTR) => {}
            opened => return opened.map_err(code),
        }
    }
    Err(ErrorCode::Busy)
}

fn check(path: &str) -> Result<(), ErrorCode> {
    if path.is_empty() {
        return Err(ErrorCode::NoEntry);
    }
    if path.len() > MAX_PATH || path.split('/').any(|name| name.len() > MAX_NAME) {
        return Err(ErrorCode::NameTooLong);
    }
    if path.starts_with('/') {
        return Err(ErrorCode::NotPermitted);
    }
    if path.contains('\0') { Err(ErrorCode::Invalid) } else { Ok(()) }
}

/// Sets the times of an open file or directory; `None` leaves a time unchanged.
pub(super) fn set_times(
    what: impl AsFd,
    accessed: Option<Duration>,
    modified: Option<Duration>,
) -> Result<(), ErrorCode> {
    let times = Timestamps { last_access: timespec(accessed)?, last_modification: timespec(modified)? };
    futimens(what, &times).map_err(code)
}

fn timespec(time: Option<Duration>) -> Result<Timespec, ErrorCode> {
    Ok(match time {
        None => Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT },
        Some(time) => Timespec {
            tv_sec: i64::try_from(time.as_secs()).map_err(|_| ErrorCode::Invalid)?,
            tv_nsec: time.subsec_nanos().into(),
        },
    })
}

/// Converts an error of the system to one for guests.
pub(super) fn code(error: Errno) -> ErrorCode {
    match error {
        Errno::NOENT => ErrorCode::NoEntry,
        Errno::EXIST => ErrorCode::Exist,
        Errno::NOTDIR => ErrorCode::NotDirectory,
        Errno::ISDIR => ErrorCode::IsDirectory,
        Errno::NOTEMPTY => ErrorCode::NotEmpty,
        Errno::INVAL => ErrorCode::Invalid,
        Errno::NAMETOOLONG => ErrorCode::NameTooLong,
        // Paths that lead out of the directory, across a mount, or through a link.
        Errno::XDEV | Errno::LOOP | Errno::PERM | Errno::ACCESS => ErrorCode::NotPermitted,
        Errno::NOSPC | Errno::DQUOT => ErrorCode::InsufficientSpace,
        Errno::FBIG => ErrorCode::FileTooLarge,
        Errno::MLINK => ErrorCode::TooManyLinks,
        Errno::ROFS => ErrorCode::ReadOnly,
        Errno::BUSY | Errno::AGAIN | Errno::TXTBSY => ErrorCode::Busy,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => ErrorCode::InsufficientMemory,
        _ => ErrorCode::Io,
    }
}
