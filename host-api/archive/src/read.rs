//! Reading an archive that a stranger made.

use std::{
    collections::BTreeMap,
    io::{Cursor, Read as _},
};

use periapt_host_api::charm::CharmFiles;
use zip::ZipArchive;

/// The largest archive, in bytes: a Python charm has 9 MB, and what is uploaded is held in memory once.
pub const MAX_ARCHIVE: usize = 128 << 20;

/// The most that all files together may unpack to, in bytes: bounds what a zip bomb can cost.
pub const MAX_UNPACKED: u64 = 512 << 20;

/// The most files and directories: charms have tens, vendored Python libraries a few thousand.
pub const MAX_ENTRIES: usize = 10_000;

/// The longest path, in bytes: what file systems take, with room for where it is unpacked.
const MAX_PATH: usize = 512;

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// More bytes than are read.
    #[error("the archive has {0} bytes; at most {MAX_ARCHIVE} are taken")]
    TooLarge(usize),
    /// Not a zip.
    #[error("not a charm archive: {0}")]
    NotAZip(#[source] zip::result::ZipError),
    /// Too many entries.
    #[error("the archive has {0} entries; at most {MAX_ENTRIES} are taken")]
    TooManyEntries(usize),
    /// It unpacks to too much.
    #[error("the archive unpacks to more than {MAX_UNPACKED} bytes")]
    TooMuchUnpacked,
    /// A path that leads elsewhere, or is no path.
    #[error("entry {path:?}: {reason}")]
    BadEntry {
        /// The path, shortened.
        path: String,
        /// What is wrong.
        reason: &'static str,
    },
    /// An entry cannot be unpacked.
    #[error("entry {path:?} is broken: {source}")]
    Broken {
        /// The path.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// A metadata file is not text.
    #[error("{0} is not UTF-8 text")]
    NotText(&'static str),
}

/// An archive's files, in memory, all within bounds.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Reads all files of an archive.
    ///
    /// # Errors
    /// [`ArchiveError`], before more than the bounds was read: sizes are counted while unpacking, whatever the
    /// headers say.
    pub fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        if bytes.len() > MAX_ARCHIVE {
            return Err(ArchiveError::TooLarge(bytes.len()));
        }
        let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(ArchiveError::NotAZip)?;
        if zip.len() > MAX_ENTRIES {
            return Err(ArchiveError::TooManyEntries(zip.len()));
        }
        let mut left = MAX_UNPACKED;
        let mut files = BTreeMap::new();
        for index in 0..zip.len() {
            let entry = zip.by_index(index).map_err(ArchiveError::NotAZip)?;
            let meta = entry.entry();
            let bad =
                |path: &str, reason| ArchiveError::BadEntry { path: path.chars().take(80).collect(), reason };
            let path = std::str::from_utf8(meta.name_raw())
                .map_err(|_| bad("?", "its name is not UTF-8"))?
                .to_owned();
            check_path(&path).map_err(|reason| bad(&path, reason))?;
            if meta.encrypted() {
                return Err(bad(&path, "it is encrypted"));
            }
            if meta.is_symlink() {
                return Err(bad(&path, "links are not taken"));
            }
            if meta.is_dir() {
                continue;
            }
            let mut content = Vec::new();
            // One byte more than may be: reaching it shows that there is too much.
            entry
                .take(left + 1)
                .read_to_end(&mut content)
                .map_err(|source| ArchiveError::Broken { path: path.clone(), source })?;
            left = left.checked_sub(content.len() as u64).ok_or(ArchiveError::TooMuchUnpacked)?;
            if files.insert(path.clone(), content).is_some() {
                return Err(bad(&path, "it stands in the archive twice"));
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
        let text = |path: &'static str| match self.file(path) {
            None => Ok(None),
            Some(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => Err(ArchiveError::NotText(path)),
            },
        };
        Ok(CharmFiles {
            charmcraft: text("charmcraft.yaml")?,
            metadata: text("metadata.yaml")?,
            config: text("config.yaml")?,
            actions: text("actions.yaml")?,
        })
    }
}

fn check_path(path: &str) -> Result<(), &'static str> {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.is_empty() {
        return Err("it has no name");
    }
    if path.len() > MAX_PATH {
        return Err("its path is longer than 512 bytes");
    }
    if path.starts_with('/')
        || path.contains('\\')
        || path.contains(':')
        || path.chars().any(char::is_control)
    {
        return Err("its path is not a plain relative path");
    }
    match path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
        true => Err("its path leads out of the archive"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, content) in files {
            zip.start_file(*path, SimpleFileOptions::default()).unwrap();
            zip.write_all(content).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    #[test]
    fn files_are_read_by_path() {
        let archive = Archive::read(&zip_of(&[("a.txt", b"a"), ("dir/b.txt", b"b")])).unwrap();
        assert_eq!(archive.file("dir/b.txt"), Some(b"b".as_slice()));
        assert_eq!(archive.files().count(), 2);
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in ["../a", "/a", "a/../../b", "a\\b", "c:a", "a//b", "./a", "a\nb"] {
            assert!(Archive::read(&zip_of(&[(path, b"")])).is_err(), "{path:?}");
        }
    }

    #[test]
    fn links_are_refused() {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        zip.add_symlink("a", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        let error = Archive::read(&zip.finish().unwrap().into_inner()).unwrap_err();
        assert_eq!(error.to_string(), "entry \"a\": links are not taken");
    }

    #[test]
    fn a_bomb_is_stopped_while_it_unpacks() {
        let piece = vec![0; 200 << 20];
        let bomb = zip_of(&[("a", &piece), ("b", &piece), ("c", &piece)]);
        assert!(bomb.len() < 1 << 20);
        assert!(matches!(Archive::read(&bomb), Err(ArchiveError::TooMuchUnpacked)));
    }

    #[test]
    fn what_is_no_zip_is_refused() {
        assert!(matches!(Archive::read(b"PK"), Err(ArchiveError::NotAZip(_))));
        let mut broken = zip_of(&[("a", b"hello hello hello hello")]);
        broken.truncate(broken.len() / 2);
        assert!(Archive::read(&broken).is_err());
    }
}
