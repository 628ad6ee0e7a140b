//! Whole files, for hook tools that are told to read or to write one. They go the way that the guest's own calls go, so
//! a tool reaches nothing that its hook does not reach.

use periapt_hook::{FileError, FileRequest};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorFlags, ErrorCode, OpenFlags};

use super::{
    Files, disk,
    handle::{Handle, Mount},
    stream::MAX_PIECE,
    tree::ROOT,
};
use std::sync::Arc;

/// Where relative paths begin: the directory that hooks start in.
const CHARM: &str = "/charm";
const TMP: &str = "/tmp";

impl Files {
    /// Does what a tool asks for; answers a file's content, or nothing for one that was written.
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

    /// Opens a file for as long as something is done with it.
    fn with<T>(
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

    /// The directory that a hook finds open and that a path leads into, and the rest of the path. Of nested ones it is
    /// the innermost.
    fn root_of<'p>(&self, path: &'p str) -> Result<(Handle, &'p str), ErrorCode> {
        if !path.starts_with('/') {
            return Ok((Handle::Directory { mount: Mount::Charm, id: ROOT }, path));
        }
        let beneath = |location: &str| match path.strip_prefix(location.trim_end_matches('/'))? {
            "" => Some("."),
            rest => rest.strip_prefix('/').map(|rest| if rest.is_empty() { "." } else { rest }),
        };
        let mounts = self.storage().iter().filter_map(|mount| Some((mount, beneath(&mount.location)?)));
        if let Some((mount, rest)) = mounts.min_by_key(|(_, rest)| rest.len()) {
            return Ok((Handle::Stored(Arc::new(disk::Directory::root(mount)?)), rest));
        }
        let memory = [(CHARM, Mount::Charm), (TMP, Mount::Tmp)];
        let found = memory.into_iter().find_map(|(location, mount)| Some((mount, beneath(location)?)));
        let (mount, rest) = found.ok_or(ErrorCode::NoEntry)?;
        Ok((Handle::Directory { mount, id: ROOT }, rest))
    }

    fn read_whole(&self, file: u32, at_most: usize) -> Result<Vec<u8>, ErrorCode> {
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

    fn write_whole(&self, file: u32, content: &[u8]) -> Result<(), ErrorCode> {
        let now = self.now();
        self.writable(file)?.write(0, content, now)
    }
}

fn error(code: ErrorCode) -> FileError {
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
