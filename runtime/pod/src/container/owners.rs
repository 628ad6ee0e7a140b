//! The owners and modes of an image's files.
//!
//! The layers on the disk belong to root, seen from the container. Each change copies a file to the upper layer, so the
//! table has those alone that make a difference.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    os::fd::OwnedFd,
};

use rustix::{
    fs::{CWD, Gid, Mode, OFlags, ResolveFlags, Uid, fchmod, fchown, fstat, openat2},
    io::Errno,
};

use super::{
    options::{ContainerUser, MountAccess},
    order::OrderedMount,
};

/// The most bytes of a table: 500,000 entries with paths of more than a hundred bytes.
const MAX_TABLE: u64 = 64 << 20;

/// The most bytes of a record: a path and three numbers.
const MAX_RECORD: u64 = 4_096 + 64;

/// Gives owners and modes to files below the root of this process. What is not there, or is the container's own, stays.
pub(super) fn apply(table: OwnedFd) -> Result<(), String> {
    let mut table = BufReader::new(File::from(table).take(MAX_TABLE));
    let mut record = Vec::new();
    loop {
        record.clear();
        let read = table.by_ref().take(MAX_RECORD).read_until(0, &mut record);
        if read.map_err(|error| format!("cannot read the table of owners: {error}"))? == 0 {
            return Ok(());
        }
        let text = record.strip_suffix(b"\0").and_then(|record| std::str::from_utf8(record).ok());
        let parts = text.and_then(|text| {
            let mut parts = text.splitn(4, ' ');
            let mode = u32::from_str_radix(parts.next()?, 8).ok().filter(|mode| *mode <= 0o7777)?;
            Some((mode, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?))
        });
        let (mode, user, group, path) =
            parts.ok_or_else(|| "the table of owners has a record that is none".to_owned())?;
        give(path, mode, user, group)?;
    }
}

fn give(path: &str, mode: u32, user: u32, group: u32) -> Result<(), String> {
    let failed = |error: Errno| match error {
        Errno::INVAL => format!(
            "the image's {path} belongs to user {user} and group {group}, which the container has not"
        ),
        Errno::NOSPC => {
            format!("the upper layer has no room for the image's {path}, which others than root own")
        }
        error => format!("cannot give the image's {path} its owner: {error}"),
    };
    let below = if path.is_empty() { "." } else { path };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let root = openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty());
    match root.and_then(|root| openat2(root, below, flags, Mode::empty(), resolve)) {
        Ok(file) => {
            fchown(&file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group))).map_err(failed)?;
            fchmod(&file, Mode::from_raw_mode(mode)).map_err(failed)
        }
        Err(Errno::NOENT | Errno::XDEV | Errno::LOOP) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Lets a user other than root write in the mounts that are written to, by its group, as `fsGroup` of Kubernetes does. The
/// directory of a mount that has another owner or group than root already stays as it is.
pub(super) fn share(mounts: &[OrderedMount], user: ContainerUser) -> Result<(), String> {
    let ContainerUser { user_id, group_id } = user;
    if user_id == 0 {
        return Ok(());
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    for mount in mounts.iter().filter(|mount| mount.access == MountAccess::ReadWrite) {
        let target = &mount.target;
        let failed = |error: Errno| format!("cannot give {target} to the group {group_id}: {error}");
        let root = openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty());
        let root = root.map_err(failed)?;
        let directory = openat2(root, target.as_str(), flags, Mode::empty(), resolve).map_err(failed)?;
        let found = fstat(&directory).map_err(failed)?;
        if (found.st_uid, found.st_gid) == (0, 0) {
            fchown(&directory, None, Some(Gid::from_raw(group_id))).map_err(failed)?;
            let mode = Mode::from_raw_mode(found.st_mode) | Mode::RWXG;
            fchmod(&directory, mode).map_err(failed)?;
        }
    }
    Ok(())
}
