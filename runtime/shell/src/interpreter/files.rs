//! Paths, and requests for the unit's files.

use std::fmt::{self, Write as _};

use periapt_hook::FileError;

use super::{Shell, Unwind};
use crate::{FileAnswer, FileCall, FileKind, FileStat, LISTED_NAME, Reply, Request, Stopped};

/// Work for a file request beside its bytes: some system calls.
const FILE_CALL: usize = 1_024;

/// A file error in the wording of commands: with a capital.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileFault(pub(crate) FileError);

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let mut characters = text.chars();
        let first = characters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(characters).try_for_each(|character| f.write_char(character))
    }
}

impl Shell {
    /// Resolves a path from the root, without `.` and `..`. There are no links.
    pub(crate) fn path(&self, path: &str) -> String {
        let base = if path.starts_with('/') { "" } else { self.scope.directory.as_str() };
        let mut names: Vec<&str> = Vec::new();
        for name in base.split('/').chain(path.split('/')) {
            match name {
                "" | "." => {}
                ".." => {
                    names.pop();
                }
                name => names.push(name),
            }
        }
        format!("/{}", names.join("/"))
    }

    /// Makes a file request without content in its answer, and pays for it before.
    pub(crate) async fn file(&mut self, call: FileCall) -> Result<Result<FileAnswer, FileFault>, Unwind> {
        self.pay(FILE_CALL)?;
        Ok(self.answered(call).await?.map_err(FileFault))
    }

    async fn answered(&mut self, call: FileCall) -> Result<Result<FileAnswer, FileError>, Unwind> {
        match self.ask(Request::File(call)).await {
            Reply::File(answer) => Ok(answer),
            Reply::Done | Reply::Tool(_) => Err(Stopped::Answer.into()),
        }
    }

    /// Reads a file. It reads no more than the script can pay for.
    pub(crate) async fn read_file(&mut self, path: &str) -> Result<Result<Vec<u8>, FileFault>, Unwind> {
        self.pay(FILE_CALL)?;
        let at_most = self.meter.affordable();
        match self.answered(FileCall::Read { path: self.path(path), at_most }).await? {
            Ok(FileAnswer::Content(content)) => {
                self.pay(content.len())?;
                Ok(Ok(content))
            }
            Ok(_) => Err(Stopped::Answer.into()),
            Err(error) => self.not_got(error, at_most),
        }
    }

    /// Lists the names in a directory. It lists no more than the script can pay for.
    pub(crate) async fn list_directory(
        &mut self,
        path: String,
    ) -> Result<Result<Vec<(String, FileKind)>, FileFault>, Unwind> {
        self.pay(FILE_CALL)?;
        let at_most = self.meter.affordable();
        match self.answered(FileCall::List { path, at_most }).await? {
            Ok(FileAnswer::Names(names)) => {
                let bytes = names.iter().map(|(name, _)| name.len().saturating_add(LISTED_NAME));
                self.pay(bytes.fold(0, usize::saturating_add))?;
                Ok(Ok(names))
            }
            Ok(_) => Err(Stopped::Answer.into()),
            Err(error) => self.not_got(error, at_most),
        }
    }

    /// Pays for a content that was too long, because the host read it up to its bound.
    fn not_got<T>(&mut self, error: FileError, at_most: usize) -> Result<Result<T, FileFault>, Unwind> {
        if error == FileError::TooLarge {
            self.pay(at_most.saturating_add(1))?;
        }
        Ok(Err(FileFault(error)))
    }

    /// Returns the metadata of a path.
    pub(crate) async fn stat(&mut self, path: &str) -> Result<Result<FileStat, FileFault>, Unwind> {
        match self.file(FileCall::Stat { path: self.path(path) }).await? {
            Ok(FileAnswer::Found(found)) => Ok(Ok(found)),
            Ok(_) => Err(Stopped::Answer.into()),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Returns the kind of a path.
    pub(crate) async fn kind(&mut self, path: &str) -> Result<Result<FileKind, FileFault>, Unwind> {
        Ok(self.stat(path).await?.map(|found| found.kind))
    }
}
