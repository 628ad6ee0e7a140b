//! The host's answers to requests for files.

use std::collections::BTreeMap;

use super::request::{FileError, FileRequest};
use crate::{CallError, lease::Interruption};

/// The most files that one call may read: one for `--file`, and one for each key of a large secret.
const MAX_FILES: usize = 64;

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

    pub(super) fn answer(&self, request: FileRequest) -> Result<Result<Vec<u8>, FileError>, Interruption> {
        if self.answers.len() >= MAX_FILES && !self.answers.contains_key(&request) {
            let text = format!("one call may read at most {MAX_FILES} files");
            return Err(CallError::LimitExceeded(text).into());
        }
        self.answers.get(&request).cloned().ok_or(Interruption::NeedsFile(request))
    }

    pub(super) fn bytes(&self) -> usize {
        self.answers.values().flatten().map(Vec::len).sum()
    }
}
