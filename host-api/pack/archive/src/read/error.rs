//! The errors of reading archives.

use std::io;

use rawzip::ErrorKind;

use super::{ALLOWANCE, MAX_ARCHIVE, MAX_ENTRIES, MAX_RATIO, MAX_UNPACKED};

/// An archive that was refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The archive is too large. Holds its size in bytes.
    #[error("the archive has {0} bytes; at most {MAX_ARCHIVE} are taken")]
    TooLarge(u64),
    /// The bytes are no zip, or one that programs could read in different ways.
    #[error("not a charm archive: {0}")]
    NotAZip(#[from] NotAZip),
    /// The archive has too many entries.
    #[error("the archive has {0} entries; at most {MAX_ENTRIES} are taken")]
    TooManyEntries(u64),
    /// The archive unpacks to too many bytes.
    #[error(
        "the archive has {length} bytes, and unpacks to {unpacked}; at most {most} are taken: {ALLOWANCE} and \
         {MAX_RATIO} for each of its own, but no more than {MAX_UNPACKED}"
    )]
    TooMuchUnpacked {
        /// The size of the archive, in bytes.
        length: u64,
        /// The size of its files and directories on disk, in bytes.
        unpacked: u64,
        /// The largest size on disk that is allowed, in bytes.
        most: u64,
    },
    /// An entry cannot be unpacked below a directory, or contradicts its headers.
    #[error("entry {path:?}: {reason}")]
    BadEntry {
        /// The path of the entry, shortened.
        path: String,
        /// The mistake.
        reason: &'static str,
    },
    /// An entry's content cannot be unpacked.
    #[error("entry {path:?} is broken: {reason}")]
    Broken {
        /// The path of the entry, shortened.
        path: String,
        /// The error of the decoder.
        reason: String,
    },
    /// A metadata file is not UTF-8.
    #[error("{0} is not UTF-8 text")]
    NotText(&'static str),
    /// A metadata file is too large. Holds its size in bytes.
    #[error("{0} has {1} bytes; at most 1048576 are read")]
    LongText(&'static str, u64),
    /// The archive's own file cannot be read: an error of the host.
    #[error("cannot read the archive: {0}")]
    Unreadable(#[source] io::Error),
}

/// A zip that is malformed or ambiguous.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAZip {
    /// The zip has no central directory at its end.
    #[error("it has no zip directory at its end; it is no zip, or was cut off")]
    NoDirectory,
    /// The central directory is cut off, or points behind the end.
    #[error("it is cut off")]
    CutOff,
    /// Other bytes stand in the place of a header.
    #[error("a header is not where the directory says")]
    NoHeader,
    /// The unpacked bytes have another checksum than the headers say.
    #[error("its checksum is wrong")]
    Checksum,
    /// The unpacked bytes are longer or shorter than the headers say.
    #[error("its size is wrong")]
    Size,
    /// A header is longer than any of a charm's.
    #[error("a header has more than 65536 bytes")]
    LongHeader,
    /// Bytes stand before the first entry. Holds their number.
    #[error("{0} bytes before its first entry belong to no entry")]
    Before(u64),
    /// Bytes stand behind the end.
    #[error("data follows its end")]
    After,
    /// The central directory has more or fewer entries than announced.
    #[error("its directory has more or fewer entries than it says")]
    Count,
    /// Bytes stand between the central directory and its end.
    #[error("something stands between its directory and its end (records of ZIP64 are not taken)")]
    Hidden,
    /// Any other error of the zip library.
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

/// Shortens a path for an error.
fn shortened(path: &str) -> String {
    periapt_host_api::excerpt::shortened(path).into_owned()
}
