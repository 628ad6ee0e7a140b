//! Reading an archive that a stranger made.

mod error;
mod layout;
mod names;
mod reader;
mod source;
mod unpack;

use std::collections::BTreeMap;

use periapt_host_api::charm::CharmFiles;

pub use error::{ArchiveError, NotAZip};
pub use reader::{ArchiveReader, CopyError};
pub use source::Source;
pub use unpack::UnpackError;

/// The largest archive, in bytes: a Python charm has 9 MB. The command line reads it into memory; the controller keeps an
/// upload on the disk.
pub const MAX_ARCHIVE: usize = 128 << 20;

/// The most that any archive may unpack to, in bytes: a Python charm has 40 MB.
pub const MAX_UNPACKED: u64 = 512 << 20;

/// What any archive may unpack to, however small it is, in bytes: a thousand small files.
pub const ALLOWANCE: u64 = 4 << 20;

/// How many bytes more an archive may unpack to for each byte that it has: charms' code and libraries unpack to 3 or 4,
/// text to 10. Deflate can make 1,000 of one.
pub const MAX_RATIO: u64 = 20;

/// The most files and directories: charms have tens, vendored Python libraries a few thousand.
pub const MAX_ENTRIES: usize = 10_000;

/// An archive's files, in memory, all within bounds. For what is small, or one's own; [`ArchiveReader`] holds none.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Reads all files of an archive.
    ///
    /// # Errors
    /// [`ArchiveError`], before anything is unpacked that is more than the bounds.
    pub fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let reader = ArchiveReader::open(bytes)?;
        let mut files = BTreeMap::new();
        for path in reader.paths() {
            if let Some(content) = reader.read(path)? {
                files.insert(path.to_owned(), content);
            }
        }
        Ok(Self { files })
    }

    /// One file's content.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// All files, by path; paths are relative, with `/` between parts, and lead nowhere else.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// The metadata files.
    ///
    /// # Errors
    /// [`ArchiveError::NotText`]
    pub fn charm_files(&self) -> Result<CharmFiles, ArchiveError> {
        charm_files(|path| Ok(self.file(path).map(<[u8]>::to_vec)))
    }
}

fn charm_files(
    read: impl Fn(&'static str) -> Result<Option<Vec<u8>>, ArchiveError>,
) -> Result<CharmFiles, ArchiveError> {
    let text = |path: &'static str| match read(path)? {
        None => Ok(None),
        Some(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| ArchiveError::NotText(path)),
    };
    Ok(CharmFiles {
        charmcraft: text("charmcraft.yaml")?,
        metadata: text("metadata.yaml")?,
        config: text("config.yaml")?,
        actions: text("actions.yaml")?,
    })
}
