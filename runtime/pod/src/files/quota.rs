//! The bound on the files of a workload that has no file system of its own.

use std::{fs, io, path::Path, sync::Arc};

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::error::FileError;

/// The most that the files of a workload may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileBounds {
    /// The bytes of all files together.
    pub bytes: u64,
    /// The files and directories.
    pub files: u64,
}

/// The turns of requests that write files. One at a time, as each counts first what is there.
#[derive(Debug)]
pub(crate) struct Quota {
    bounds: FileBounds,
    turns: Arc<Mutex<()>>,
}

/// The room for the files of one request.
#[derive(Debug)]
pub(crate) struct Room {
    bounds: FileBounds,
    left: FileBounds,
    _turn: OwnedMutexGuard<()>,
}

impl Quota {
    pub(crate) fn new(bounds: FileBounds) -> Self {
        Self { bounds, turns: Arc::default() }
    }

    /// Waits for a turn, and counts the files below a directory.
    pub(crate) async fn room(&self, root: &Path) -> Result<Room, FileError> {
        let (bounds, root) = (self.bounds, root.to_owned());
        let turn = Arc::clone(&self.turns).lock_owned().await;
        let counted = tokio::task::spawn_blocking(move || used(&root)).await;
        let used = counted.map_err(io::Error::other).and_then(|used| used);
        let used = used.map_err(|error| FileError::of("count", "/", &error))?;
        let left = FileBounds {
            bytes: bounds.bytes.saturating_sub(used.bytes),
            files: bounds.files.saturating_sub(used.files),
        };
        Ok(Room { bounds, left, _turn: turn })
    }
}

impl Room {
    /// Takes room for a file or directory with the directories above it.
    pub(crate) fn place(&mut self, path: &str) -> Result<(), FileError> {
        let parts = path.split('/').filter(|part| !part.is_empty()).count();
        let left = self.left.files.checked_sub(u64::try_from(parts).unwrap_or(u64::MAX));
        let full = || FileError::other(format!("a workload has at most {} files", self.bounds.files));
        self.left.files = left.ok_or_else(full)?;
        Ok(())
    }

    /// Takes room for bytes.
    pub(crate) fn bytes(&mut self, bytes: usize) -> Result<(), FileError> {
        let left = self.left.bytes.checked_sub(u64::try_from(bytes).unwrap_or(u64::MAX));
        let full = || {
            let most = self.bounds.bytes >> 20;
            FileError::other(format!("the files of a workload have at most {most} MiB together"))
        };
        self.left.bytes = left.ok_or_else(full)?;
        Ok(())
    }
}

/// Counts the files below a directory.
fn used(root: &Path) -> io::Result<FileBounds> {
    let mut used = FileBounds { bytes: 0, files: 0 };
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        let entries = match fs::read_dir(&directory) {
            // Another request has removed it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let Ok(metadata) = entry.metadata() else { continue };
            used.files += 1;
            match metadata.is_dir() {
                true => waiting.push(entry.path()),
                false => used.bytes = used.bytes.saturating_add(metadata.len()),
            }
        }
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_there_leaves_the_rest_and_is_given_back_when_it_goes() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("a")).unwrap();
        fs::write(root.path().join("a/b"), "12345").unwrap();
        let quota = Quota::new(FileBounds { bytes: 8, files: 4 });
        let mut room = quota.room(root.path()).await.unwrap();
        room.bytes(3).unwrap();
        assert!(room.bytes(1).unwrap_err().message.contains("at most 0 MiB together"));
        room.place("/c/d").unwrap();
        assert!(room.place("/e").unwrap_err().message.contains("at most 4 files"));
        drop(room);
        fs::remove_dir_all(root.path().join("a")).unwrap();
        let mut room = quota.room(root.path()).await.unwrap();
        room.bytes(8).unwrap();
        room.place("/a/b/c/d").unwrap();
    }
}
