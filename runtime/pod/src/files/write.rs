//! New files and directories, and files to read.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, lchown},
    path::{Path, PathBuf},
};

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
        let file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial).map_err(failed)?;
        Ok(Self { shown: place.shown.clone(), target, partial, file, mode, owner, is_whole: false })
    }

    /// Adds bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.file.write_all(bytes).map_err(|error| FileError::of("write", &self.shown, &error))
    }

    /// Gives the file its owner, its permissions and its name.
    pub(crate) fn finish(mut self) -> Result<(), FileError> {
        let failed = |call: &str, error: io::Error| FileError::of(call, &self.shown, &error);
        if let Some((user, group)) = self.owner {
            rustix::fs::fchown(
                &self.file,
                Some(rustix::fs::Uid::from_raw(user)),
                Some(rustix::fs::Gid::from_raw(group)),
            )
            .map_err(|error| failed("chown", error.into()))?;
        }
        self.file
            .set_permissions(Permissions::from_mode(self.mode))
            .map_err(|error| failed("chmod", error))?;
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
        if let Some((user, group)) = owner {
            lchown(directory, Some(user), Some(group))?;
        }
    }
    Ok(())
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
    if let Some((user, group)) = owner {
        chown(&place.path, Some(user), Some(group)).map_err(|error| failed("chown", error))?;
    }
    // The mask of the pod's process does not count.
    fs::set_permissions(&place.path, Permissions::from_mode(mode)).map_err(|error| failed("chmod", error))
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
