//! Paths, and calls to the unit's files.

use periapt_hook::FileError;

use super::{Halt, Shell};
use crate::{FileAnswer, FileCall, FileKind, FileStat, Reply, Request};

/// What is told where the answer is none.
const FAILED: &str = "Input/output error";

/// What a call to the files costs beside its bytes: some calls to the system.
pub(super) const FILE_CALL: usize = 1_024;

impl Shell {
    /// A path from the root, without `.` and `..`: there are no links that they could lead along.
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

    /// Makes a call to the files. The error is text.
    pub(crate) async fn file(&mut self, call: FileCall) -> Result<FileAnswer, String> {
        match self.ask(Request::File(call)).await {
            Reply::File(Ok(answer)) => Ok(answer),
            Reply::File(Err(error)) => Err(told(error)),
            Reply::Done | Reply::Tool(_) => Err(FAILED.to_owned()),
        }
    }

    /// The content of a file, or why it cannot be read. One that is too long has been read to its bound.
    pub(crate) async fn read_file(&mut self, path: &str) -> Result<Result<Vec<u8>, String>, Halt> {
        let at_most = self.longest_text();
        let call = FileCall::Read { path: self.path(path), at_most };
        match self.ask(Request::File(call)).await {
            Reply::File(Ok(FileAnswer::Content(content))) => {
                self.pay(content.len().saturating_add(FILE_CALL))?;
                Ok(Ok(content))
            }
            Reply::File(Err(error)) => {
                self.pay(if error == FileError::TooLarge { at_most } else { FILE_CALL })?;
                Ok(Err(told(error)))
            }
            Reply::File(Ok(_)) | Reply::Done | Reply::Tool(_) => Ok(Err(FAILED.to_owned())),
        }
    }

    /// What a path leads to.
    pub(crate) async fn stat(&mut self, path: &str) -> Result<FileStat, String> {
        match self.file(FileCall::Stat { path: self.path(path) }).await? {
            FileAnswer::Found(found) => Ok(found),
            _ => Err(FAILED.to_owned()),
        }
    }

    /// Whether a path leads to a file or to a directory.
    pub(crate) async fn kind(&mut self, path: &str) -> Result<FileKind, String> {
        Ok(self.stat(path).await?.kind)
    }
}

/// An error as commands tell it: with a capital.
fn told(error: FileError) -> String {
    let text = error.to_string();
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
