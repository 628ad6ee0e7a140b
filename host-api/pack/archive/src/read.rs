//! The reader of untrusted archives.

mod entry;
mod error;
mod layout;
mod names;
mod reader;
mod source;
mod unpack;

use std::collections::BTreeMap;

use periapt_host_api::charm::CharmFiles;

pub use entry::CopyError;
pub use error::{ArchiveError, NotAZip};
pub use reader::ArchiveReader;
pub use source::Source;
pub use unpack::UnpackError;

/// The largest archive, in bytes: a Python charm has 9 MB. The command line reads an archive into memory; the
/// controller stores an upload on disk.
pub const MAX_ARCHIVE: usize = 128 << 20;

/// The most bytes that any archive may unpack to: a Python charm has 40 MB.
pub const MAX_UNPACKED: u64 = 512 << 20;

/// The bytes that every archive may unpack to, even a small one: a thousand small files.
pub const ALLOWANCE: u64 = 4 << 20;

/// The further bytes that an archive may unpack to, for each of its own bytes: charms' code and libraries unpack to 3
/// or 4, text to 10. Deflate can make 1,000 of one.
pub const MAX_RATIO: u64 = 20;

/// The most files and directories: charms have tens, vendored Python libraries a few thousand.
pub const MAX_ENTRIES: usize = 10_000;

/// All files of an archive, in memory, within the bounds. For small or trusted archives; [`ArchiveReader`] holds no
/// files.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Reads all files of an archive.
    ///
    /// # Errors
    /// [`ArchiveError`]. Bounds are checked before anything is unpacked.
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

    /// Returns one file's content.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Returns all files, by path. Paths are relative, with `/` between parts, and never lead out.
    pub fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// Returns the metadata files.
    ///
    /// # Errors
    /// [`ArchiveError::NotText`]
    pub fn charm_files(&self) -> Result<CharmFiles, ArchiveError> {
        charm_files(|path| Ok(self.file(path).map(<[u8]>::to_vec)))
    }
}

/// Reads the metadata files. `None` means that there is no such file.
pub(crate) fn charm_files(
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
