//! Requests for files of the guest, and the reasons why they fail.

use serde::{Deserialize, Serialize};

/// A hook tool's request for a file of the guest. Relative paths start at the charm's own files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
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
