//! Files that hook tools are told to read or to write (`--file`, `key#file`, `--output`): the guest's own, which this
//! room has no hands on. The shell that has them is asked, as it is for a lease or a secret.

use std::collections::BTreeMap;

use crate::{CallError, lease::Halt, run::HookRun};

/// Files that one call may read: one for `--file`, and one for each key of a large secret.
const MAX_FILES: usize = 64;

/// What a hook tool needs of the guest's files. Relative paths begin where the guest does, at the charm's own files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileRequest {
    /// The whole file.
    Read {
        /// As the tool was told.
        path: String,
        /// Of a longer file the shell reads nothing.
        at_most: usize,
    },
    /// The file anew, with this content.
    Write {
        /// As the tool was told.
        path: String,
        /// All of it.
        content: String,
    },
}

/// Why a file was not read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is none.
    #[error("no such file or directory")]
    Absent,
    /// It is a directory.
    #[error("is a directory")]
    Directory,
    /// A part of the path is no directory.
    #[error("not a directory")]
    NotDirectory,
    /// Something is there already.
    #[error("file exists")]
    Exists,
    /// The directory holds something.
    #[error("directory not empty")]
    NotEmpty,
    /// The hook may not do that there.
    #[error("permission denied")]
    Denied,
    /// The charm's own files do not change.
    #[error("read-only file system")]
    ReadOnly,
    /// It is longer than what was asked for.
    #[error("file too large")]
    TooLarge,
    /// The hook's files have reached their bound.
    #[error("no space left on device")]
    NoSpace,
    /// There are no files at all: nobody has put a sandbox around the hook.
    #[error("there are no files outside of a hook's sandbox")]
    NoFiles,
    /// Anything else.
    #[error("input/output error")]
    Failed,
}

/// What the shell answered in the call that is being made.
#[derive(Debug, Default)]
pub(crate) struct Files {
    answers: BTreeMap<FileRequest, Result<Vec<u8>, FileError>>,
}

impl Files {
    pub(crate) fn answered(&mut self, request: FileRequest, answer: Result<Vec<u8>, FileError>) {
        self.answers.insert(request, answer);
    }

    /// A file may have changed when the next call asks for it.
    pub(crate) fn forget(&mut self) {
        self.answers.clear();
    }

    fn answer(&self, request: FileRequest) -> Result<Result<Vec<u8>, FileError>, Halt> {
        if self.answers.len() >= MAX_FILES && !self.answers.contains_key(&request) {
            let text = format!("one call may read at most {MAX_FILES} files");
            return Err(CallError::LimitExceeded(text).into());
        }
        self.answers.get(&request).cloned().ok_or(Halt::NeedsFile(request))
    }

    fn bytes(&self) -> usize {
        self.answers.values().flatten().map(Vec::len).sum()
    }
}

impl HookRun {
    /// A file as a tool reads it. All that one call reads is no longer than its arguments may be.
    pub(crate) fn read_file(&mut self, path: &str) -> Result<Vec<u8>, Halt> {
        let at_most = self.limits.call_bytes;
        let answer = self.files.answer(FileRequest::Read { path: path.to_owned(), at_most })?;
        let content = answer.map_err(|error| CallError::Failed(format!("open {}: {error}", shown(path))))?;
        self.check_call(self.files.bytes())?;
        Ok(content)
    }

    /// Writes a file, in place of what it held.
    pub(crate) fn write_file(&mut self, path: &str, content: String) -> Result<(), Halt> {
        let answer = self.files.answer(FileRequest::Write { path: path.to_owned(), content })?;
        answer.map_err(|error| CallError::Failed(format!("open {}: {error}", shown(path))))?;
        Ok(())
    }
}

/// A path for an error's text, which is no place for a mebibyte.
fn shown(path: &str) -> &str {
    path.get(..path.floor_char_boundary(256)).unwrap_or_default()
}
