//! Why an archive is refused.

use std::io;

use rawzip::ErrorKind;

use super::{ALLOWANCE, MAX_ARCHIVE, MAX_ENTRIES, MAX_RATIO, MAX_UNPACKED};

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// More bytes than are read.
    #[error("the archive has {0} bytes; at most {MAX_ARCHIVE} are taken")]
    TooLarge(u64),
    /// Not a zip, or one that programs could read in different ways.
    #[error("not a charm archive: {0}")]
    NotAZip(#[from] NotAZip),
    /// Too many entries.
    #[error("the archive has {0} entries; at most {MAX_ENTRIES} are taken")]
    TooManyEntries(u64),
    /// It unpacks to too much.
    #[error(
        "the archive has {length} bytes, and unpacks to {unpacked}; at most {most} are taken: {ALLOWANCE} and \
         {MAX_RATIO} for each of its own, but no more than {MAX_UNPACKED}"
    )]
    TooMuchUnpacked {
        /// Its own size.
        length: u64,
        /// What its files and directories take on a disk.
        unpacked: u64,
        /// What they may take.
        most: u64,
    },
    /// An entry that cannot be unpacked below a directory, or that is not what it says.
    #[error("entry {path:?}: {reason}")]
    BadEntry {
        /// Its path, shortened.
        path: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// An entry's content cannot be unpacked.
    #[error("entry {path:?} is broken: {reason}")]
    Broken {
        /// The path, shortened.
        path: String,
        /// Why.
        reason: String,
    },
    /// A metadata file is not text.
    #[error("{0} is not UTF-8 text")]
    NotText(&'static str),
    /// A metadata file is larger than any that is read.
    #[error("{0} has {1} bytes; at most 1048576 are read")]
    LongText(&'static str, u64),
    /// The archive's own file cannot be read: not the archive's fault.
    #[error("cannot read the archive: {0}")]
    Unreadable(#[source] io::Error),
}

/// Why something is not one zip that everybody reads alike.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAZip {
    /// There is no directory at its end.
    #[error("it has no zip directory at its end; it is no zip, or was cut off")]
    NoDirectory,
    /// The directory is cut off, or points behind the end.
    #[error("it is cut off")]
    CutOff,
    /// Something else than a header stands where one should.
    #[error("a header is not where the directory says")]
    NoHeader,
    /// What was unpacked has another checksum than the headers say.
    #[error("its checksum is wrong")]
    Checksum,
    /// What was unpacked is longer or shorter than the headers say.
    #[error("its size is wrong")]
    Size,
    /// A header that is longer than any of a charm's.
    #[error("a header has more than 65536 bytes")]
    LongHeader,
    /// Something stands before the first entry.
    #[error("{0} bytes before its first entry belong to no entry")]
    Before(u64),
    /// Something stands behind the end.
    #[error("something follows behind its end")]
    After,
    /// The directory has other entries than announced.
    #[error("its directory has more or fewer entries than it says")]
    Count,
    /// Something stands between the directory and its end.
    #[error("something stands between its directory and its end (records of ZIP64 are not taken)")]
    Hidden,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl NotAZip {
    pub(super) fn of(error: &rawzip::Error) -> Self {
        match error.kind() {
            ErrorKind::MissingEndOfCentralDirectory => Self::NoDirectory,
            ErrorKind::Eof | ErrorKind::InvalidEndOfCentralDirectory => Self::CutOff,
            ErrorKind::IO(error) if error.kind() == io::ErrorKind::UnexpectedEof => Self::CutOff,
            ErrorKind::InvalidSignature { .. } => Self::NoHeader,
            ErrorKind::InvalidChecksum { .. } => Self::Checksum,
            ErrorKind::InvalidSize { .. } => Self::Size,
            ErrorKind::BufferTooSmall { .. } => Self::LongHeader,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl ArchiveError {
    pub(super) fn of_zip(error: rawzip::Error) -> Self {
        let not_a_zip = NotAZip::of(&error);
        match error.into_kind() {
            ErrorKind::IO(error) if error.raw_os_error().is_some() => Self::Unreadable(error),
            _ => Self::NotAZip(not_a_zip),
        }
    }

    pub(super) fn bad(path: &str, reason: &'static str) -> Self {
        Self::BadEntry { path: shortened(path), reason }
    }

    pub(super) fn broken(path: &str, reason: String) -> Self {
        Self::Broken { path: shortened(path), reason }
    }
}

/// As much of a path as an error shows.
fn shortened(path: &str) -> String {
    periapt_host_api::excerpt::shortened(path).into_owned()
}
