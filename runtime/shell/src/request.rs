//! Requests of a script to its caller, and their answers.

use std::time::Duration;

use periapt_hook::{FileError, ToolOutput};

/// One request of a script, which continues after the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run a hook tool. Answer with [`Reply::Tool`].
    Tool {
        /// The tool's name.
        name: String,
        /// The tool's arguments.
        arguments: Vec<String>,
        /// The standard input, if it is a pipe or a file.
        stdin: Option<Vec<u8>>,
    },
    /// Wait. Answer with [`Reply::Done`].
    Sleep(Duration),
    /// Use the unit's files. Answer with [`Reply::File`].
    File(FileCall),
    /// Yield: the script has computed for a while. Answer with [`Reply::Done`].
    Pause,
}

/// Bytes of a name in a directory's listing beside its own.
pub const LISTED_NAME: usize = 128;

/// A request for the files that a hook of the unit sees. All paths are absolute, without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCall {
    /// Read a file, unless it is longer than `at_most` bytes: [`FileAnswer::Content`].
    Read {
        /// The file's path.
        path: String,
        /// The most bytes to read.
        at_most: usize,
    },
    /// Write a file, and create it if it does not exist: [`FileAnswer::Done`].
    Write {
        /// The file's path.
        path: String,
        /// The bytes to write.
        content: Vec<u8>,
        /// True to append, false to replace the content.
        append: bool,
    },
    /// List a directory's names, sorted, unless they take more than `at_most` bytes, each [`LISTED_NAME`] beside its
    /// own: [`FileAnswer::Names`].
    List {
        /// The directory's path.
        path: String,
        /// The most bytes to list.
        at_most: usize,
    },
    /// Look a path up: [`FileAnswer::Found`].
    Stat {
        /// The path.
        path: String,
    },
    /// Make a directory: [`FileAnswer::Done`].
    MakeDirectory {
        /// The directory's path.
        path: String,
    },
    /// Remove a file, or an empty directory: [`FileAnswer::Done`].
    Remove {
        /// The path.
        path: String,
        /// True for a directory.
        directory: bool,
    },
}

/// The kind of a directory's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// The metadata of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// The kind: a file or a directory.
    pub kind: FileKind,
    /// The size in bytes; 0 for a directory.
    pub size: u64,
    /// True if the script may write the file, or make and remove files in the directory.
    pub writable: bool,
}

/// The answer to a file request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAnswer {
    /// A file's bytes.
    Content(Vec<u8>),
    /// A directory's entries, sorted by name.
    Names(Vec<(String, FileKind)>),
    /// A path's metadata.
    Found(FileStat),
    /// Success without content.
    Done,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The answer to [`Request::Sleep`] and [`Request::Pause`].
    Done,
    /// The answer to [`Request::Tool`].
    Tool(ToolOutput),
    /// The answer to [`Request::File`].
    File(Result<FileAnswer, FileError>),
}
