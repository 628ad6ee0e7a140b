//! Reads and writes of whole files for hook tools. They use the same calls as the guest, so a tool reaches only the
//! hook's own files.

use periapt_hook::{FileError, FileRequest};
use periapt_host_api::resource::RESOURCES;
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

use super::{
    Files, disk,
    handle::{Handle, Mount},
    stream::MAX_PIECE,
    tree::ROOT,
};
use std::sync::Arc;

/// The start of relative paths: the working directory of hooks.
pub(super) const CHARM: &str = "/charm";
pub(super) const TMP: &str = "/tmp";

impl Files {
    /// Carries out a hook tool's request. Returns the content of a file that was read, and nothing for one that was
    /// written.
    pub(crate) fn answer(&mut self, request: &FileRequest) -> Result<Vec<u8>, FileError> {
        let done = match request {
            FileRequest::Read { path, at_most } => {
                self.with(path, OpenFlags::empty(), DescriptorFlags::READ, |files, file| {
                    files.read_whole(file, *at_most)
                })
            }
            FileRequest::Write { path, content } => {
                let how = OpenFlags::CREATE | OpenFlags::TRUNCATE;
                self.with(path, how, DescriptorFlags::WRITE, |files, file| {
                    files.write_whole(file, content.as_bytes()).map(|()| Vec::new())
                })
            }
        };
        done.map_err(error)
    }

    /// Opens a file, calls a function with it, and closes it.
    pub(super) fn with<T>(
        &mut self,
        path: &str,
        how: OpenFlags,
        access: DescriptorFlags,
        what: impl FnOnce(&mut Self, u32) -> Result<T, ErrorCode>,
    ) -> Result<T, ErrorCode> {
        let (root, rest) = self.root_of(path)?;
        let root = self.open(root)?;
        let done = match self.open_at(root, rest, how, access) {
            Ok(file) => {
                let done = what(self, file);
                self.close(file);
                done
            }
            Err(error) => Err(error),
        };
        self.close(root);
        done
    }

    /// Calls a function with a path and the preopened directory that contains it.
    pub(super) fn within(
        &mut self,
        path: &str,
        what: impl FnOnce(&mut Self, u32, &str) -> Result<(), ErrorCode>,
    ) -> Result<(), ErrorCode> {
        let (root, rest) = self.root_of(path)?;
        let root = self.open(root)?;
        let done = what(self, root, rest);
        self.close(root);
        done
    }

    /// Returns the preopened directory that a path leads into, with the rest of the path. Of nested ones it is the
    /// innermost.
    pub(super) fn root_of<'p>(&self, path: &'p str) -> Result<(Handle, &'p str), ErrorCode> {
        if !path.starts_with('/') {
            return Ok((Handle::Directory { mount: Mount::Charm, id: ROOT }, path));
        }
        let beneath = |location: &str| match path.strip_prefix(location.trim_end_matches('/'))? {
            "" => Some("."),
            rest => rest.strip_prefix('/').map(|rest| if rest.is_empty() { "." } else { rest }),
        };
        let mounts = self.storage().iter().filter_map(|mount| Some((mount, beneath(&mount.location)?)));
        // Each location is a prefix of the path, so the longest one is the innermost.
        if let Some((mount, rest)) = mounts.max_by_key(|(mount, _)| mount.location.len()) {
            return Ok((Handle::Stored(Arc::new(disk::Directory::root(mount)?)), rest));
        }
        let resources = self.has_resources().then_some((RESOURCES, Mount::Resources));
        let mut memory = [(CHARM, Mount::Charm), (TMP, Mount::Tmp)].into_iter().chain(resources);
        let found = memory.find_map(|(location, mount)| Some((mount, beneath(location)?)));
        let (mount, rest) = found.ok_or(ErrorCode::NoEntry)?;
        Ok((Handle::Directory { mount, id: ROOT }, rest))
    }

    pub(super) fn read_whole(&self, file: u32, at_most: usize) -> Result<Vec<u8>, ErrorCode> {
        let source = self.readable(file)?;
        let mut content = Vec::new();
        loop {
            let piece = source.read(content.len() as u64, MAX_PIECE)?;
            if piece.is_empty() {
                return Ok(content);
            }
            content.extend(piece);
            if content.len() > at_most {
                return Err(ErrorCode::FileTooLarge);
            }
        }
    }

    pub(super) fn write_whole(&self, file: u32, content: &[u8]) -> Result<(), ErrorCode> {
        let now = self.now();
        self.writable(file)?.write(0, content, now)
    }
}

pub(super) fn error(code: ErrorCode) -> FileError {
    match code {
        ErrorCode::NoEntry | ErrorCode::NotDirectory => FileError::Absent,
        ErrorCode::IsDirectory => FileError::Directory,
        ErrorCode::NotPermitted | ErrorCode::Access => FileError::Denied,
        ErrorCode::ReadOnly => FileError::ReadOnly,
        ErrorCode::FileTooLarge => FileError::TooLarge,
        ErrorCode::InsufficientSpace | ErrorCode::InsufficientMemory | ErrorCode::Quota => FileError::NoSpace,
        _ => FileError::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use periapt_host_api::Timestamp;

    use super::{
        super::{Bounds, CharmFiles, Filesystem, StorageMount},
        *,
    };
    use crate::clock::HookClock;

    /// Creates a hook's files over a charm with `files/note` and a link that leads out of it, with 100 bytes of `/tmp`.
    fn files() -> (tempfile::TempDir, Files) {
        let outside = tempfile::tempdir().unwrap();
        let charm = outside.path().join("charm");
        fs::create_dir_all(charm.join("files")).unwrap();
        fs::write(charm.join("files/note"), "read me").unwrap();
        fs::write(outside.path().join("secret"), "of the host").unwrap();
        symlink(outside.path().join("secret"), charm.join("link")).unwrap();
        let clock = Arc::new(HookClock::new(Timestamp::UNIX_EPOCH, 0));
        let files = Files::new(CharmFiles::scan(&charm).unwrap(), 100, 10, clock);
        (outside, files)
    }

    fn read(files: &mut Files, path: &str) -> Result<String, FileError> {
        let content = files.answer(&FileRequest::Read { path: path.to_owned(), at_most: 80 })?;
        Ok(String::from_utf8(content).unwrap())
    }

    fn write(files: &mut Files, path: &str, content: &str) -> Result<(), FileError> {
        files.answer(&FileRequest::Write { path: path.to_owned(), content: content.to_owned() }).map(drop)
    }

    #[test]
    fn a_tool_reads_what_its_hook_reads_and_nothing_else() {
        let (outside, mut files) = files();
        for path in ["files/note", "/charm/files/note", "/charm/./files/../files/note", "./files/note"] {
            assert_eq!(read(&mut files, path).as_deref(), Ok("read me"), "{path}");
        }
        let host = outside.path().join("secret").display().to_string();
        for path in ["link", "/charm/link", "/etc/passwd", "/", "", "/charmed", "/proc/self/environ", &host] {
            assert_eq!(read(&mut files, path), Err(FileError::Absent), "{path}");
        }
        for path in ["..", "../secret", "/charm/../secret", "/tmp/../charm/files/note"] {
            assert_eq!(read(&mut files, path), Err(FileError::Denied), "{path}");
        }
        for path in ["/charm", "/tmp/", "files"] {
            assert_eq!(read(&mut files, path), Err(FileError::Directory), "{path}");
        }
    }

    #[test]
    fn a_tool_writes_where_its_hook_writes_within_the_same_bounds() {
        let (_outside, mut files) = files();
        write(&mut files, "/tmp/a", &"x".repeat(60)).unwrap();
        write(&mut files, "/tmp/a", "anew").unwrap();
        assert_eq!(read(&mut files, "/tmp/a").as_deref(), Ok("anew"));
        assert_eq!(write(&mut files, "note", "x"), Err(FileError::ReadOnly));
        assert_eq!(write(&mut files, "/etc/motd", "x"), Err(FileError::Absent));
        assert_eq!(write(&mut files, "/tmp/b", &"x".repeat(200)), Err(FileError::NoSpace));
        write(&mut files, "/tmp/long", &"x".repeat(90)).unwrap();
        assert_eq!(read(&mut files, "/tmp/long"), Err(FileError::TooLarge));
    }

    #[test]
    fn storage_is_found_where_the_charm_wants_it() {
        let (outside, files) = files();
        let mount = |name: &str, location: &str, read_only: bool| {
            let directory = outside.path().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("note"), name).unwrap();
            symlink(outside.path().join("secret"), directory.join("link")).unwrap();
            let filesystem = Filesystem::open(&directory, Bounds { bytes: 1 << 20, files: 10 }).unwrap();
            StorageMount { filesystem: Arc::new(filesystem), location: location.to_owned(), read_only }
        };
        let mounts = vec![mount("outer", "/srv/data", false), mount("inner", "/srv/data/inner", true)];
        let mut files = files.with_storage(mounts);
        assert_eq!(read(&mut files, "/srv/data/note").as_deref(), Ok("outer"));
        assert_eq!(read(&mut files, "/srv/data/inner/note").as_deref(), Ok("inner"));
        write(&mut files, "/srv/data/new", "kept").unwrap();
        assert_eq!(fs::read_to_string(outside.path().join("outer/new")).unwrap(), "kept");
        assert_eq!(write(&mut files, "/srv/data/inner/new", "x"), Err(FileError::ReadOnly));
        assert_eq!(read(&mut files, "/srv/data"), Err(FileError::Directory));
        for path in ["/srv/data/link", "/srv/data/../note", "/srv/database/note"] {
            assert!(read(&mut files, path).is_err(), "{path}");
        }
    }

    #[test]
    fn no_handle_is_left_open() {
        let (_outside, mut files) = files();
        for _ in 0..1_000 {
            read(&mut files, "files/note").unwrap();
            assert!(read(&mut files, "files/none").is_err());
        }
    }
}
