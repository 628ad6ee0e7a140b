//! The files of a unit for a script that an operator runs with `exec`, without a guest. Each call uses the same code
//! and limits as a guest's call.

use std::{collections::BTreeMap, fs::File, sync::Arc};

use periapt_hook::{CallError, FileError, FileRequest};
use periapt_host_api::{Timestamp, resource::RESOURCES};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, DescriptorType, ErrorCode, OpenFlags};

use super::{
    Files, ResourcesMount, StorageMount,
    handle::{Handle, Mount},
    listing::Gathering,
    whole::{self, CHARM, TMP},
};
use crate::{Budgets, Prepared, clock::HookClock, meter::Meter};

/// The files of one unit during one script, with an empty `/tmp` of its own.
#[derive(Debug)]
pub struct UnitFiles {
    files: Files,
    meter: Arc<Meter>,
}

/// The kind of a path's target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitFile {
    /// A file.
    File {
        /// The size in bytes.
        size: u64,
    },
    /// A directory.
    Directory,
}

impl UnitFiles {
    /// Creates the files for a charm and its storage, with the limits of a hook.
    pub fn new(
        prepared: &Prepared,
        storage: Vec<StorageMount>,
        resources: ResourcesMount,
        budgets: &Budgets,
        now: Timestamp,
    ) -> Self {
        let clock = Arc::new(HookClock::new(now, 0));
        let files = Files::new(prepared.files.clone(), budgets.tmp_bytes, budgets.tmp_files, clock);
        let files = files.with_storage(storage).with_resources(resources);
        Self { files, meter: Arc::new(Meter::new(u64::MAX)) }
    }

    /// Carries out a hook tool's request. Returns the content of a file that was read, and nothing for one that was
    /// written.
    ///
    /// # Errors
    /// [`FileError`], here and below.
    pub fn answer(&mut self, request: &FileRequest) -> Result<Vec<u8>, FileError> {
        self.files.answer(request)
    }

    /// Adds the content of a resource at its usual path.
    ///
    /// # Errors
    /// [`CallError`], as for a hook.
    pub fn show_resource(&mut self, name: &str, filename: &str, file: File) -> Result<(), CallError> {
        self.files.show_resource(name, filename, file)
    }

    /// Reads a file of at most `at_most` bytes.
    pub fn read(&mut self, path: &str, at_most: usize) -> Result<Vec<u8>, FileError> {
        self.answered(path, |files| {
            files.with(path, OpenFlags::empty(), DescriptorFlags::READ, |files, file| {
                files.read_whole(file, at_most)
            })
        })
    }

    /// Replaces a file's content, or creates the file.
    pub fn write(&mut self, path: &str, content: &[u8]) -> Result<(), FileError> {
        let how = OpenFlags::CREATE | OpenFlags::TRUNCATE;
        self.answered(path, |files| {
            files.with(path, how, DescriptorFlags::WRITE, |files, file| files.write_whole(file, content))
        })
    }

    /// Appends to a file, or creates it.
    pub fn append(&mut self, path: &str, content: &[u8]) -> Result<(), FileError> {
        self.answered(path, |files| {
            files.with(path, OpenFlags::CREATE, DescriptorFlags::WRITE, |files, file| {
                let now = files.now();
                let end = files.stat_handle(file)?.size;
                files.writable(file)?.write(end, content, now)
            })
        })
    }

    /// Returns the sorted names in a directory with their kinds, in at most `at_most` bytes of memory.
    pub fn list(&mut self, path: &str, at_most: usize) -> Result<Vec<(String, UnitFile)>, FileError> {
        let above = self.above(path);
        if !above.is_empty() {
            return Ok(above);
        }
        let gathering = Gathering::new(&self.meter, at_most as u64);
        let listed = self.answered(path, |files| {
            files.with(path, OpenFlags::DIRECTORY, DescriptorFlags::READ, |files, directory| {
                let listing = match files.stored(directory)? {
                    Some(stored) => stored.list(gathering)?,
                    None => files.list(directory, gathering)?,
                };
                let file = |kind| match kind {
                    DescriptorType::Directory => UnitFile::Directory,
                    _ => UnitFile::File { size: 0 },
                };
                Ok(listing.map(|(kind, name)| (name.to_string(), file(kind))).collect())
            })
        });
        // Memory is the only space that a listing can exhaust.
        listed.map_err(|error| if error == FileError::NoSpace { FileError::TooLarge } else { error })
    }

    /// Returns the kind of a path's target.
    pub fn stat(&mut self, path: &str) -> Result<UnitFile, FileError> {
        if !self.above(path).is_empty() {
            return Ok(UnitFile::Directory);
        }
        self.answered(path, |files| {
            files.with(path, OpenFlags::empty(), DescriptorFlags::READ, |files, file| {
                let stat = files.stat_handle(file)?;
                Ok(match stat.type_ {
                    DescriptorType::Directory => UnitFile::Directory,
                    _ => UnitFile::File { size: stat.size },
                })
            })
        })
    }

    /// Returns true if a file may be written, or a directory's entries changed: in `/tmp`, and in storage unless it is
    /// attached read-only.
    pub fn is_writable(&self, path: &str) -> bool {
        match self.files.root_of(path) {
            Ok((Handle::Directory { mount, .. }, _)) => mount == Mount::Tmp,
            Ok((Handle::Stored(directory), _)) => !directory.is_read_only(),
            Ok((Handle::File { .. }, _)) | Err(_) => false,
        }
    }

    /// Creates a directory.
    pub fn make_directory(&mut self, path: &str) -> Result<(), FileError> {
        self.answered(path, |files| files.within(path, Files::create_directory))
    }

    /// Removes a file.
    pub fn remove(&mut self, path: &str) -> Result<(), FileError> {
        self.answered(path, |files| files.within(path, Files::unlink))
    }

    /// Removes an empty directory.
    pub fn remove_directory(&mut self, path: &str) -> Result<(), FileError> {
        self.answered(path, |files| files.within(path, Files::remove_directory))
    }

    /// Runs an operation on a path. The directories above the hook's own exist, but cannot be changed.
    fn answered<T>(
        &mut self,
        path: &str,
        what: impl FnOnce(&mut Files) -> Result<T, ErrorCode>,
    ) -> Result<T, FileError> {
        if !self.above(path).is_empty() {
            return Err(FileError::Directory);
        }
        what(&mut self.files).map_err(|code| match code {
            ErrorCode::NotDirectory => FileError::NotDirectory,
            ErrorCode::Exist => FileError::Exists,
            ErrorCode::NotEmpty => FileError::NotEmpty,
            // A mount point, which hooks cannot remove either.
            ErrorCode::Invalid => FileError::Denied,
            code => whole::error(code),
        })
    }

    /// Returns the entries of a directory that contains only mount points: `/`, and `/srv` if storage is at
    /// `/srv/data`. Returns none for other directories.
    fn above(&self, path: &str) -> Vec<(String, UnitFile)> {
        let base = path.trim_end_matches('/');
        if !path.starts_with('/') || self.files.root_of(path).is_ok() {
            return Vec::new();
        }
        let storage = self.files.storage().iter().map(|mount| mount.location.as_str());
        let resources = self.files.has_resources().then_some(RESOURCES);
        let mounts = [CHARM, TMP].into_iter().chain(resources).chain(storage);
        let names = mounts.filter_map(|place| {
            let rest = place.strip_prefix(base)?.strip_prefix('/')?;
            rest.split('/').next().filter(|name| !name.is_empty())
        });
        let names: BTreeMap<String, UnitFile> =
            names.map(|name| (name.to_owned(), UnitFile::Directory)).collect();
        names.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::{Bounds, CharmFiles, Filesystem},
        *,
    };

    /// Creates the files of a charm with `files/note`, storage at `/srv/data`, and 100 bytes of `/tmp`.
    fn files() -> (tempfile::TempDir, UnitFiles) {
        let outside = tempfile::tempdir().unwrap();
        let (charm, data) = (outside.path().join("charm"), outside.path().join("data"));
        fs::create_dir_all(charm.join("files")).unwrap();
        fs::create_dir(&data).unwrap();
        fs::write(charm.join("files/note"), "read me").unwrap();
        let filesystem = Filesystem::open(&data, Bounds { bytes: 1 << 20, files: 10 }).unwrap();
        let location = "/srv/data".to_owned();
        let mount = StorageMount { filesystem: Arc::new(filesystem), location, read_only: false };
        let clock = Arc::new(HookClock::new(Timestamp::UNIX_EPOCH, 0));
        let files = Files::new(CharmFiles::scan(&charm).unwrap(), 100, 10, clock);
        let files = files.with_storage(vec![mount]);
        (outside, UnitFiles { files, meter: Arc::new(Meter::new(u64::MAX)) })
    }

    fn names(files: &mut UnitFiles, path: &str) -> Result<Vec<String>, FileError> {
        Ok(files.list(path, 1 << 20)?.into_iter().map(|(name, _)| name).collect())
    }

    #[test]
    fn the_directories_of_a_hook_are_found_from_the_root_on() {
        let (_outside, mut files) = files();
        assert_eq!(names(&mut files, "/").unwrap(), ["charm", "srv", "tmp"]);
        assert_eq!(names(&mut files, "/srv").unwrap(), ["data"]);
        assert_eq!(names(&mut files, "/srv/data").unwrap(), [""; 0]);
        assert_eq!(files.list("/charm", 1_000).unwrap(), [("files".to_owned(), UnitFile::Directory)]);
        assert_eq!(files.stat("/srv"), Ok(UnitFile::Directory));
        assert_eq!(files.stat("/charm/files/note"), Ok(UnitFile::File { size: 7 }));
        assert_eq!(files.list("/charm", 100), Err(FileError::TooLarge));
        for path in ["/etc", "/resources", "/sr", "/srv/database"] {
            assert_eq!(files.stat(path), Err(FileError::Absent), "{path}");
        }
        assert_eq!(names(&mut files, "/charm/files/note"), Err(FileError::NotDirectory));
        for path in ["/", "/srv"] {
            assert_eq!(files.read(path, 10), Err(FileError::Directory), "{path}");
            assert_eq!(files.make_directory(path), Err(FileError::Directory), "{path}");
        }
    }

    #[test]
    fn files_are_written_and_removed_where_a_hook_may_do_so() {
        let (outside, mut files) = files();
        for place in ["/tmp", "/srv/data"] {
            files.make_directory(&format!("{place}/a")).unwrap();
            assert_eq!(files.make_directory(&format!("{place}/a")), Err(FileError::Exists));
            let file = format!("{place}/a/b");
            files.write(&file, b"old and long").unwrap();
            files.write(&file, b"new").unwrap();
            files.append(&file, b" and more").unwrap();
            assert_eq!(files.read(&file, 100).unwrap(), b"new and more", "{place}");
            assert_eq!(files.read(&file, 3), Err(FileError::TooLarge));
            assert_eq!(files.remove_directory(&format!("{place}/a")), Err(FileError::NotEmpty));
            files.remove(&file).unwrap();
            files.remove_directory(&format!("{place}/a")).unwrap();
            assert_eq!(files.remove(&file), Err(FileError::Absent));
        }
        assert_eq!(files.write("/tmp/large", &[0; 101]), Err(FileError::NoSpace));
        for error in [
            files.write("/charm/new", b"x"),
            files.append("/charm/files/note", b"x"),
            files.make_directory("/charm/new"),
            files.remove("/charm/files/note"),
        ] {
            assert_eq!(error, Err(FileError::ReadOnly));
        }
        assert_eq!(fs::read_to_string(outside.path().join("charm/files/note")).unwrap(), "read me");
    }

    #[test]
    fn what_may_be_written_is_told_as_writing_it_would_show() {
        let (_outside, mut files) = files();
        files.write("/tmp/a", b"x").unwrap();
        for (path, writable) in [
            ("/tmp", true),
            ("/tmp/a", true),
            ("/srv/data", true),
            ("/srv", false),
            ("/", false),
            ("/charm", false),
            ("/charm/files/note", false),
        ] {
            assert_eq!(files.is_writable(path), writable, "{path}");
        }
        let read_only =
            files.files.storage().iter().map(|mount| StorageMount { read_only: true, ..mount.clone() });
        let read_only = read_only.collect();
        files.files = files.files.with_storage(read_only);
        assert!(!files.is_writable("/srv/data"));
        assert_eq!(files.write("/srv/data/a", b"x"), Err(FileError::ReadOnly));
    }

    #[test]
    fn no_path_and_no_mount_is_led_out_of() {
        let (_outside, mut files) = files();
        for path in ["/charm/../etc", "/srv/data/../../etc", "/tmp/.."] {
            assert!(files.read(path, 10).is_err() && files.write(path, b"x").is_err(), "{path}");
        }
        for path in ["/tmp", "/charm", "/srv/data"] {
            assert!(files.remove_directory(path).is_err() && files.remove(path).is_err(), "{path}");
        }
        for _ in 0..200 {
            files.list("/srv/data", 1_000).unwrap();
            files.stat("/charm/files").unwrap();
        }
    }
}
