//! The charm's own files.

use std::{fs, io, path::Path, sync::Arc, time::Duration};

use super::tree::{DirectoryId, DiskEntry, Entry, ROOT, Tree};

/// The most files and directories of a charm: more than any real charm has. Their tree takes about ten
/// megabytes.
const MAX_ENTRIES: u64 = 50_000;

/// The tree of a charm's unpacked files, listed once per charm and shared by its hooks. Contents stay on
/// disk.
#[derive(Debug, Clone)]
pub(crate) struct CharmFiles {
    pub(super) tree: Arc<Tree>,
}

impl CharmFiles {
    /// Creates an empty tree.
    pub(crate) fn none() -> Self {
        Self { tree: Arc::new(Tree::new(Duration::ZERO)) }
    }

    /// Lists a directory. Links and special files are left out.
    pub(crate) fn scan(directory: &Path) -> io::Result<Self> {
        // A fixed time: hooks must not see when the charm was unpacked.
        let time = Duration::ZERO;
        let mut tree = Tree::new(time);
        let mut waiting: Vec<(Box<Path>, DirectoryId)> = vec![(directory.into(), ROOT)];
        let mut number = 0;
        while let Some((path, parent)) = waiting.pop() {
            for entry in fs::read_dir(&path)? {
                let entry = entry?;
                // WASI names are UTF-8, so other names are left out.
                let Ok(name) = entry.file_name().into_string() else { continue };
                number += 1;
                if number > MAX_ENTRIES {
                    return Err(io::Error::other(format!("a charm may have {MAX_ENTRIES} files at most")));
                }
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    let id = tree.make_directory(parent, &name, time).map_err(io::Error::other)?;
                    waiting.push((entry.path().into(), id));
                } else if kind.is_file() {
                    let size = entry.metadata()?.len();
                    let file = DiskEntry { path: entry.path().into(), size, number };
                    let file = Entry::Disk(Arc::new(file));
                    tree.insert(parent, &name, file, time).map_err(io::Error::other)?;
                }
            }
        }
        Ok(Self { tree: Arc::new(tree) })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use periapt_host_api::Timestamp;
    use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

    use super::{
        super::{Files, listing::Gathering},
        *,
    };
    use crate::{clock::HookClock, meter::Meter};

    /// Creates a hook's files over a charm with `files/note` and two links that lead out of it.
    fn files() -> (tempfile::TempDir, Files) {
        let outside = tempfile::tempdir().unwrap();
        let charm = outside.path().join("charm");
        fs::create_dir_all(charm.join("files")).unwrap();
        fs::write(charm.join("files/note"), "read me").unwrap();
        fs::write(outside.path().join("secret"), "of the host").unwrap();
        symlink(outside.path().join("secret"), charm.join("file-link")).unwrap();
        symlink(outside.path(), charm.join("directory-link")).unwrap();
        let clock = Arc::new(HookClock::new(Timestamp::UNIX_EPOCH, 0));
        let files = Files::new(CharmFiles::scan(&charm).unwrap(), 100, 10, clock);
        (outside, files)
    }

    #[test]
    fn the_charms_files_are_read_and_links_are_not_there() {
        let (_outside, mut files) = files();
        let root = files.preopened().unwrap()[0].0;
        let note = files.open_at(root, "files/note", OpenFlags::empty(), DescriptorFlags::READ).unwrap();
        assert_eq!(files.readable(note).unwrap().read(5, 100).unwrap(), b"me");
        for link in ["file-link", "directory-link/secret", "directory-link"] {
            let opened = files.open_at(root, link, OpenFlags::empty(), DescriptorFlags::READ);
            assert_eq!(opened, Err(ErrorCode::NoEntry), "{link}");
        }
        let gathering = Gathering::new(&Arc::new(Meter::new(0)), u64::MAX);
        let names: Vec<_> = files.list(root, gathering).unwrap().map(|(_, name)| name).collect();
        assert_eq!(names, ["files".into()]);
    }

    #[test]
    fn the_charms_files_cannot_be_changed() {
        let (_outside, mut files) = files();
        let root = files.preopened().unwrap()[0].0;
        let write = files.open_at(root, "files/note", OpenFlags::empty(), DescriptorFlags::WRITE);
        assert_eq!(write, Err(ErrorCode::ReadOnly));
        let truncate = files.open_at(root, "files/note", OpenFlags::TRUNCATE, DescriptorFlags::READ);
        assert_eq!(truncate, Err(ErrorCode::ReadOnly));
        assert_eq!(files.create_directory(root, "new"), Err(ErrorCode::ReadOnly));
        assert_eq!(files.unlink(root, "files/note"), Err(ErrorCode::ReadOnly));
        assert_eq!(files.rename((root, "files/note"), (root, "x")), Err(ErrorCode::ReadOnly));
    }

    #[test]
    fn a_file_of_the_hooks_own_is_written_renamed_and_removed_within_its_quota() {
        let (_outside, mut files) = files();
        let tmp = files.preopened().unwrap()[1].0;
        let make = OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let file = files.open_at(tmp, "a", make, DescriptorFlags::WRITE).unwrap();
        assert_eq!(files.open_at(tmp, "a", make, DescriptorFlags::WRITE), Err(ErrorCode::Exist));
        let written = files.writable(file).unwrap().write(0, &[7; 101], Duration::ZERO);
        assert_eq!(written, Err(ErrorCode::InsufficientSpace));
        files.writable(file).unwrap().write(0, &[7; 100], Duration::ZERO).unwrap();
        files.rename((tmp, "a"), (tmp, "b")).unwrap();
        assert!(matches!(files.find(tmp, "a"), Err(ErrorCode::NoEntry)));
        files.unlink(tmp, "b").unwrap();
        // The open file's bytes still count. After its close they do not.
        let other = files.open_at(tmp, "c", make, DescriptorFlags::WRITE).unwrap();
        assert!(files.writable(other).unwrap().write(0, b"x", Duration::ZERO).is_err());
        files.close(file);
        files.writable(other).unwrap().write(0, b"x", Duration::ZERO).unwrap();
    }

    #[test]
    fn names_and_handles_are_counted() {
        let (_outside, mut files) = files();
        let tmp = files.preopened().unwrap()[1].0;
        for number in 0..10 {
            files.create_directory(tmp, &number.to_string()).unwrap();
        }
        assert_eq!(files.create_directory(tmp, "more"), Err(ErrorCode::InsufficientSpace));
        files.remove_directory(tmp, "3").unwrap();
        files.create_directory(tmp, "more").unwrap();
        let mut open = || files.open_at(tmp, "more", OpenFlags::DIRECTORY, DescriptorFlags::READ);
        let refused = (0..1000).find_map(|_| open().err());
        assert_eq!(refused, Some(ErrorCode::InsufficientMemory));
    }
}
