//! The space for storage on the agent's disk. Storage has a size limit but no reserved space. So the controller
//! compares the sum of the limits with the space that the agent reports here.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use periapt_sandbox::spare_bytes;

use super::directories::Directories;

/// Returns the space for all storage, in mebibytes: its present content and the disk's free space without the host's
/// part. The agent calls this once at its start, before any other process writes to the disk.
pub(crate) fn of_storage(directories: &Directories) -> Option<u64> {
    match of(&directories.storages()) {
        Ok(room) => Some(room >> 20),
        Err(error) => {
            tracing::warn!(%error, "cannot read the free space for storage, so its size has no limit");
            None
        }
    }
}

fn of(storages: &Path) -> io::Result<u64> {
    let held = held(storages.to_owned())?;
    // If the directory does not exist, it will be created in the agent's directory. If it exists, it may be a mount
    // point.
    let disk = storages.ancestors().find(|path| path.exists()).unwrap_or(storages);
    Ok(held.saturating_add(spare_bytes(disk)?))
}

/// Returns the disk space of the files below a directory, in bytes. It does not follow links.
fn held(directory: PathBuf) -> io::Result<u64> {
    let (mut bytes, mut left) = (0_u64, vec![directory]);
    while let Some(directory) = left.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let meta = entry.metadata()?;
            // The unit is 512 bytes, regardless of the disk's block size.
            bytes = bytes.saturating_add(meta.blocks().saturating_mul(512));
            if meta.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_storage_holds_is_room_that_it_has() {
        let place = tempfile::tempdir().unwrap();
        let storages = place.path().join("storage");
        assert_eq!(held(storages.clone()).unwrap(), 0);
        assert!(of(&storages).unwrap() > 0, "there is no directory, but a disk");
        let files = storages.join("model/data-0/deep/deeper");
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join("file"), vec![1; 3 << 20]).unwrap();
        fs::write(place.path().join("elsewhere"), vec![1; 3 << 20]).unwrap();
        symlink(place.path(), files.join("link")).unwrap();
        let held = held(storages.clone()).unwrap();
        assert!(((3 << 20)..(4 << 20)).contains(&held), "{held}");
        assert!(of(&storages).unwrap() >= held);
    }
}
