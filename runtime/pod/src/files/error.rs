//! Errors of files, as the API tells them.

use std::io;

use serde_json::{Value, json};

/// An error about one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileError {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl FileError {
    /// Creates an error that is none of the system's.
    pub(crate) fn other(message: impl Into<String>) -> Self {
        Self { kind: "generic-file-error", message: message.into() }
    }

    /// Returns the error of a system call, in the words of the kernel.
    pub(crate) fn of(call: &str, path: &str, error: &io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => "not-found",
            io::ErrorKind::PermissionDenied => "permission-denied",
            _ => "generic-file-error",
        };
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        let text: String = first.into_iter().chain(letters).collect();
        Self { kind, message: format!("{call} {path}: {text}") }
    }

    /// Returns the item of a response for a path.
    pub(crate) fn item(path: &str, result: &Result<(), Self>) -> Value {
        match result {
            Ok(()) => json!({ "path": path }),
            Err(Self { kind, message }) => {
                json!({ "path": path, "error": { "kind": kind, "message": message } })
            }
        }
    }
}
