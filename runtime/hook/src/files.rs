//! Files that hook tools read or write (`--file`, `key#file`, `--output`). They are the guest's own. This crate does
//! no I/O, so the host reads and writes them, as it renews a lease or fetches a secret.

mod answers;
mod request;

pub(crate) use answers::Files;
pub use request::{FileError, FileRequest};

use crate::{CallError, context::HookRun, lease::Interruption};

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
