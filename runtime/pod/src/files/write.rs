//! New files and directories, and files to read.

use std::{
    fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown, lchown,
    },
    path::{Path, PathBuf},
};

use rustix::process::{getegid, geteuid};

use super::{error::FileError, place::Place};

/// The treatment of missing parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parents {
    /// They are made, and belong to the owner of the new file or directory.
    Make,
    /// They are an error.
    Require,
}

/// A file that is being written, under another name until it is whole.
#[derive(Debug)]
pub(crate) struct Upload {
    shown: String,
    target: PathBuf,
    partial: PathBuf,
    file: File,
    mode: u32,
    owner: Option<(u32, u32)>,
    is_whole: bool,
}

impl Upload {
    /// Begins a file, which replaces the one that is there once it is whole. A link is followed.
    pub(crate) fn begin(
        place: &Place,
        mode: u32,
        owner: Option<(u32, u32)>,
        parents: Parents,
    ) -> Result<Self, FileError> {
        let failed = |error: io::Error| FileError::of("open", &place.shown, &error);
        if parents == Parents::Make {
            make_parents(&place.path, owner).map_err(|error| FileError::of("mkdir", &place.shown, &error))?;
        }
        let target = match fs::symlink_metadata(&place.path) {
            Ok(found) if found.is_symlink() => fs::canonicalize(&place.path).map_err(failed)?,
            Ok(found) if found.is_dir() => {
                return Err(failed(io::Error::from_raw_os_error(libc::EISDIR)));
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => place.path.clone(),
        };
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| FileError::other(error.to_string()))?;
        let partial = target
            .parent()
            .unwrap_or(Path::new("/"))
            .join(format!(".periapt-{:016x}.partial", u64::from_le_bytes(random)));
        // A file that is given away is the pod's alone until it is whole.
        let own = (geteuid().as_raw(), getegid().as_raw());
        let first = if owner.is_none_or(|owner| owner == own) { mode } else { 0o600 };
        let file =
            OpenOptions::new().write(true).create_new(true).mode(first).open(&partial).map_err(failed)?;
        Ok(Self { shown: place.shown.clone(), target, partial, file, mode, owner, is_whole: false })
    }

    /// Adds bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).map_err(|error| FileError::of("write", &self.shown, &error))
    }

    /// Gives the file its owner, its permissions and its name.
    pub(crate) fn finish(mut self) -> Result<(), FileError> {
        let failed = |call: &str, error: io::Error| FileError::of(call, &self.shown, &error);
        let found = self.file.metadata().map_err(|error| failed("stat", error))?;
        if let Some((user, group)) = self.owner.filter(|owner| !has_owner(&found, *owner)) {
            fchown(&self.file, Some(user), Some(group))
                .map_err(|error| failed("chown", not_permitted(error)))?;
        }
        if !has_mode(&found, self.mode) {
            let changed = self.file.set_permissions(Permissions::from_mode(self.mode));
            changed.map_err(|error| failed("chmod", not_permitted(error)))?;
        }
        fs::rename(&self.partial, &self.target).map_err(|error| failed("rename", error))?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_whole {
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Makes the missing directories above a path, and gives them the owner.
fn make_parents(path: &Path, owner: Option<(u32, u32)>) -> io::Result<()> {
    let above = path.ancestors().skip(1);
    let missing: Vec<&Path> = above.take_while(|directory| !directory.exists()).collect();
    for directory in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o755).create(directory) {
            // Another client has made it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => continue,
            made => made?,
        }
        if let Some((user, group)) = owner
            && !has_owner(&fs::symlink_metadata(directory)?, (user, group))
        {
            lchown(directory, Some(user), Some(group)).map_err(not_permitted)?;
        }
    }
    Ok(())
}

/// Returns true if a file has an owner. A pod of WebAssembly workloads may not even ask for it again.
fn has_owner(found: &Metadata, (user, group): (u32, u32)) -> bool {
    (found.uid(), found.gid()) == (user, group)
}

/// Returns true if a file has a mode, as new files have where no mask counts.
fn has_mode(found: &Metadata, mode: u32) -> bool {
    found.mode() & 0o7777 == mode
}

/// Returns the error of a change that the pod's fence denies as the kernel tells it to a process without the right.
fn not_permitted(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSYS) => io::Error::from_raw_os_error(libc::EPERM),
        _ => error,
    }
}

/// Makes a directory; with its parents, if it or one of them is missing.
pub(crate) fn make_directory(
    place: &Place,
    mode: u32,
    owner: Option<(u32, u32)>,
    parents: Parents,
) -> Result<(), FileError> {
    let failed = |call: &str, error: io::Error| FileError::of(call, &place.shown, &error);
    if parents == Parents::Make {
        if place.path.is_dir() {
            return Ok(());
        }
        make_parents(&place.path, owner).map_err(|error| failed("mkdir", error))?;
    }
    DirBuilder::new().mode(mode).create(&place.path).map_err(|error| failed("mkdir", error))?;
    let found = fs::metadata(&place.path).map_err(|error| failed("stat", error))?;
    if let Some((user, group)) = owner.filter(|owner| !has_owner(&found, *owner)) {
        chown(&place.path, Some(user), Some(group)).map_err(|error| failed("chown", not_permitted(error)))?;
    }
    if has_mode(&found, mode) {
        return Ok(());
    }
    // The mask of the pod's process does not count.
    let changed = fs::set_permissions(&place.path, Permissions::from_mode(mode));
    changed.map_err(|error| failed("chmod", not_permitted(error)))
}

/// Opens a regular file. Nothing else is opened for longer than it takes to see what it is.
pub(crate) fn open_to_read(place: &Place) -> Result<File, FileError> {
    let failed = |error: io::Error| FileError::of("open", &place.shown, &error);
    let found = fs::metadata(&place.path).map_err(failed)?;
    let other = || FileError::other(format!("can only read a regular file: {:?}", place.shown));
    if !found.is_file() {
        return Err(other());
    }
    // Another file can have come in its place: the open does not wait, and what was opened is looked at again.
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&place.path).map_err(failed)?;
    match file.metadata().map_err(failed)?.is_file() {
        true => Ok(file),
        false => Err(other()),
    }
}
