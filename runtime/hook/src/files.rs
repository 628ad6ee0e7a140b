//! Files that hook tools read or write (`--file`, `key#file`, `--output`). They are the guest's own. This crate does
//! no I/O, so the host reads and writes them, as it renews a lease or fetches a secret.

use std::collections::BTreeMap;

use crate::{CallError, lease::Interruption, run::HookRun};

/// The most files that one call may read: one for `--file`, and one for each key of a large secret.
const MAX_FILES: usize = 64;

/// A hook tool's request for a file of the guest. Relative paths start at the charm's own files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRequest {
    /// A read of the whole file.
    Read {
        /// The path as the tool was given it.
        path: String,
        /// The most bytes to read. The host refuses a longer file.
        at_most: usize,
    },
    /// A write that replaces the file's content.
    Write {
        /// The path as the tool was given it.
        path: String,
        /// The whole content.
        content: String,
    },
}

/// The reason why a file was not read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The file does not exist.
    #[error("no such file or directory")]
    Absent,
    /// The path is a directory.
    #[error("is a directory")]
    Directory,
    /// A part of the path is no directory.
    #[error("not a directory")]
    NotDirectory,
    /// The path exists already.
    #[error("file exists")]
    Exists,
    /// The directory is not empty.
    #[error("directory not empty")]
    NotEmpty,
    /// The hook has no permission.
    #[error("permission denied")]
    Denied,
    /// The path is one of the charm's own files, which are read-only.
    #[error("read-only file system")]
    ReadOnly,
    /// The file is longer than the request allows.
    #[error("file too large")]
    TooLarge,
    /// The hook's files have reached their bound.
    #[error("no space left on device")]
    NoSpace,
    /// The run has no files, because no sandbox surrounds it.
    #[error("there are no files outside of a hook's sandbox")]
    NoFiles,
    /// Any other error.
    #[error("input/output error")]
    Failed,
}

/// The host's answers in the current call.
#[derive(Debug, Default)]
pub(crate) struct Files {
    answers: BTreeMap<FileRequest, Result<Vec<u8>, FileError>>,
}

impl Files {
    pub(crate) fn answered(&mut self, request: FileRequest, answer: Result<Vec<u8>, FileError>) {
        self.answers.insert(request, answer);
    }

    /// Forgets all answers. A file may have changed when the next call reads it.
    pub(crate) fn forget(&mut self) {
        self.answers.clear();
    }

    fn answer(&self, request: FileRequest) -> Result<Result<Vec<u8>, FileError>, Interruption> {
        if self.answers.len() >= MAX_FILES && !self.answers.contains_key(&request) {
            let text = format!("one call may read at most {MAX_FILES} files");
            return Err(CallError::LimitExceeded(text).into());
        }
        self.answers.get(&request).cloned().ok_or(Interruption::NeedsFile(request))
    }

    fn bytes(&self) -> usize {
        self.answers.values().flatten().map(Vec::len).sum()
    }
}

impl HookRun {
    /// Reads a file for a tool. All files of one call together have the bound of a call's arguments.
    pub(crate) fn read_file(&mut self, path: &str) -> Result<Vec<u8>, Interruption> {
        let at_most = self.limits.call_bytes;
        let answer = self.files.answer(FileRequest::Read { path: path.to_owned(), at_most })?;
        let content = answer.map_err(|error| CallError::Failed(format!("open {}: {error}", shown(path))))?;
        self.check_call(self.files.bytes())?;
        Ok(content)
    }

    /// Writes a file, and replaces its content.
    pub(crate) fn write_file(&mut self, path: &str, content: String) -> Result<(), Interruption> {
        let answer = self.files.answer(FileRequest::Write { path: path.to_owned(), content })?;
        answer.map_err(|error| CallError::Failed(format!("open {}: {error}", shown(path))))?;
        Ok(())
    }
}

/// Cuts a path for an error's text: a path may be a mebibyte long.
fn shown(path: &str) -> &str {
    path.get(..path.floor_char_boundary(256)).unwrap_or_default()
}
