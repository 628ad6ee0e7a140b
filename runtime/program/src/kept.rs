//! The programs beside a service's data: `DATA/programs/DIGEST/periapt`.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use periapt_host_api::Digest;

/// The bytes of the disk that a program leaves free.
const SPARE: u64 = 64 << 20;

/// The name of an unfinished download.
const INCOMING: &str = "incoming";

/// Returns the directory of all programs.
fn directory(data: &Path) -> PathBuf {
    data.join("programs")
}

/// Returns the path of a program. Its last part is the name of the process in listings.
pub(crate) fn path(data: &Path, digest: &Digest) -> PathBuf {
    directory(data).join(digest.to_string()).join("periapt")
}

/// Returns the path for a download of this size, if the disk has room for it.
pub(crate) fn incoming(data: &Path, size: u64) -> io::Result<PathBuf> {
    let directory = directory(data);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let disk = rustix::fs::statvfs(&directory)?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let needed = size.saturating_add(SPARE);
    if free < needed {
        let text = format!("{} has {free} bytes free, and {needed} are needed", directory.display());
        return Err(io::Error::other(text));
    }
    Ok(directory.join(INCOMING))
}

/// Keeps a complete download under its digest, executable and on the disk.
pub(crate) fn keep(data: &Path, digest: &Digest) -> io::Result<()> {
    let (incoming, path) = (directory(data).join(INCOMING), path(data, digest));
    fs::set_permissions(&incoming, Permissions::from_mode(0o755))?;
    File::open(&incoming)?.sync_all()?;
    if let Some(own) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(own)?;
        fs::rename(incoming, &path)?;
        File::open(own)?.sync_all()?;
    }
    File::open(directory(data))?.sync_all()
}

/// Deletes all other programs, and unfinished downloads.
pub(crate) fn keep_only(data: &Path, digests: &[Digest]) -> io::Result<()> {
    let entries = match fs::read_dir(directory(data)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let is_kept = digests.iter().any(|digest| name.to_str() == Some(&digest.to_string()));
        match (is_kept, entry.file_type()?.is_dir()) {
            (true, _) => {}
            (false, true) => fs::remove_dir_all(entry.path())?,
            (false, false) => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}
