//! What a script asks of the world, and what it is answered.

use std::time::Duration;

use periapt_hook::{FileError, ToolOutput};

/// One thing that a script needs. It goes on when it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Run a hook tool. Answer with [`Reply::Tool`].
    Tool {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// What it reads, if a pipe or a file is its standard input.
        stdin: Option<Vec<u8>>,
    },
    /// Wait. Answer with [`Reply::Done`].
    Sleep(Duration),
    /// Do something with the unit's files. Answer with [`Reply::File`].
    File(FileCall),
    /// Let others run: the script has computed for a while. Answer with [`Reply::Done`].
    Pause,
}

/// What a name in a directory's listing takes beside its bytes.
pub const LISTED_NAME: usize = 128;

/// A call to the files that a hook of the unit sees. All paths are absolute, without `.` and `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileCall {
    /// The content of a file, unless it is longer than `at_most` bytes: [`FileAnswer::Content`].
    Read {
        /// Which file.
        path: String,
        /// The most bytes to read.
        at_most: usize,
    },
    /// Write a file, and make it if it is not there: [`FileAnswer::Done`].
    Write {
        /// Which file.
        path: String,
        /// What is written.
        content: Vec<u8>,
        /// Behind what it holds, rather than in its place.
        append: bool,
    },
    /// The names in a directory, sorted, unless they take more than `at_most` bytes, each [`LISTED_NAME`] beside its own:
    /// [`FileAnswer::Names`].
    List {
        /// Which directory.
        path: String,
        /// The most bytes to list.
        at_most: usize,
    },
    /// What a path leads to: [`FileAnswer::Found`].
    Stat {
        /// Which path.
        path: String,
    },
    /// Make a directory: [`FileAnswer::Done`].
    MakeDirectory {
        /// Which one.
        path: String,
    },
    /// Remove a file, or a directory that is empty: [`FileAnswer::Done`].
    Remove {
        /// Which one.
        path: String,
        /// Whether it is a directory.
        directory: bool,
    },
}

/// What something in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// A file or a directory.
    pub kind: FileKind,
    /// Its bytes; 0 for a directory.
    pub size: u64,
    /// Whether the script may write it, or make and remove files in it.
    pub writable: bool,
}

/// What a call to the files comes back with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileAnswer {
    /// A file's bytes.
    Content(Vec<u8>),
    /// A directory's entries, sorted by name.
    Names(Vec<(String, FileKind)>),
    /// What a path leads to.
    Found(FileStat),
    /// It was done.
    Done,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// To [`Request::Sleep`] and [`Request::Pause`].
    Done,
    /// To [`Request::Tool`].
    Tool(ToolOutput),
    /// To [`Request::File`].
    File(Result<FileAnswer, FileError>),
}
