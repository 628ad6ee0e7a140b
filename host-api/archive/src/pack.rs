//! Making an archive: the same input always gives the same bytes.

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Write as _},
    path::{Path, PathBuf},
};

use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use crate::{AdaptError, COMPONENT, InspectError, Inspected, MAX_ARCHIVE, adapt, inspect};

/// Files of a charm's directory that go into its archive, beside the component.
const FILES: [&str; 10] = [
    "charmcraft.yaml",
    "metadata.yaml",
    "config.yaml",
    "actions.yaml",
    "manifest.yaml",
    "README.md",
    "LICENSE",
    "icon.svg",
    "version",
    "lxd-profile.yaml",
];

/// Directories that go in whole: what a charm reads at run time, from `/charm`.
const DIRECTORIES: [&str; 3] = ["files", "templates", "assets"];

/// Why no archive was made.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not a charm's directory.
    #[error("{} is not a charm: it has neither charmcraft.yaml nor metadata.yaml", .0.display())]
    NotACharm(PathBuf),
    /// A link or a device where a file is expected.
    #[error("{} is neither a file nor a directory; only these go into an archive", .0.display())]
    NotAFile(PathBuf),
    /// The code cannot become a component.
    #[error("{}: {source}", path.display())]
    Adapt {
        /// The module.
        path: PathBuf,
        /// Why.
        source: AdaptError,
    },
    /// The archive would be refused wherever it is deployed.
    #[error(transparent)]
    Refused(#[from] InspectError),
    /// The zip cannot be written.
    #[error("cannot write the archive: {0}")]
    Zip(#[from] zip::result::ZipError),
    /// The same, from underneath.
    #[error("cannot write the archive: {0}")]
    Write(#[from] std::io::Error),
    /// More than an archive may have.
    #[error("the archive would have {0} bytes; at most {MAX_ARCHIVE} are taken")]
    TooLarge(usize),
}

/// An archive, and what was seen in it.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The archive.
    pub bytes: Vec<u8>,
    /// As whoever deploys it will see it.
    pub inspected: Inspected,
}

/// The files of an archive to be, beside its component.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    files: BTreeMap<String, Vec<u8>>,
}

impl Contents {
    /// What goes in of every charm's directory: its metadata, what says who may use it, and what it reads when it runs.
    ///
    /// # Errors
    /// [`PackError::NotACharm`] without metadata, and what cannot be read.
    pub fn of(directory: &Path) -> Result<Self, PackError> {
        let mut contents = Self::default();
        for name in FILES {
            let path = directory.join(name);
            if path.exists() {
                contents.insert(name, read(&path)?);
            }
        }
        if contents.get("charmcraft.yaml").is_none() && contents.get("metadata.yaml").is_none() {
            return Err(PackError::NotACharm(directory.to_owned()));
        }
        for name in DIRECTORIES {
            let path = directory.join(name);
            if path.is_dir() {
                contents.add(&path, name)?;
            }
        }
        Ok(contents)
    }

    /// Adds a directory with all that it holds, under a path of the archive. What Python compiled on the packer's machine
    /// stays there.
    ///
    /// # Errors
    /// What is neither a file nor a directory, and what cannot be read.
    pub fn add(&mut self, directory: &Path, place: &str) -> Result<(), PackError> {
        let failed = |source| PackError::Read { path: directory.to_owned(), source };
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().map_err(failed)?;
            if name == "__pycache__" {
                continue;
            }
            let place = format!("{place}/{name}");
            if kind.is_dir() {
                self.add(&path, &place)?;
            } else if kind.is_file() {
                self.insert(place, read(&path)?);
            } else {
                return Err(PackError::NotAFile(path));
            }
        }
        Ok(())
    }

    /// Adds a file, or puts it in another's place.
    pub fn insert(&mut self, path: impl Into<String>, content: Vec<u8>) {
        self.files.insert(path.into(), content);
    }

    /// Leaves a file out, if it is there.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// A file's content.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// All files by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// Packs the files with the charm's code: a component, or a WASI preview 1 module that is adapted.
    ///
    /// # Errors
    /// [`PackError`]; what would be refused at deploy is refused here.
    pub fn pack(self, wasm: &Path) -> Result<Packed, PackError> {
        self.pack_code(wasm, &read(wasm)?)
    }

    fn pack_code(mut self, name: &Path, wasm: &[u8]) -> Result<Packed, PackError> {
        let component = adapt(wasm).map_err(|source| PackError::Adapt { path: name.to_owned(), source })?;
        self.insert(COMPONENT, component);
        let bytes = zip_of(&self.files)?;
        if bytes.len() > MAX_ARCHIVE {
            return Err(PackError::TooLarge(bytes.len()));
        }
        let inspected = inspect(&bytes)?;
        Ok(Packed { bytes, inspected })
    }
}

/// Packs a charm's directory with its code: a component, or a WASI preview 1 module that is adapted.
///
/// # Errors
/// [`PackError`]; what would be refused at deploy is refused here.
pub fn pack(directory: &Path, wasm: &Path) -> Result<Packed, PackError> {
    Contents::of(directory)?.pack(wasm)
}

/// The same with code that is at hand, and files that were made with it: they go in beside the directory's, by their
/// paths in the archive, and in place of those of the same path. `name` is what the code is called where it is wrong.
///
/// # Errors
/// [`PackError`]
pub fn pack_with(
    directory: &Path,
    name: &Path,
    wasm: &[u8],
    made: BTreeMap<String, Vec<u8>>,
) -> Result<Packed, PackError> {
    let mut contents = Contents::of(directory)?;
    for (path, content) in made {
        contents.insert(path, content);
    }
    contents.pack_code(name, wasm)
}

fn read(path: &Path) -> Result<Vec<u8>, PackError> {
    fs::read(path).map_err(|source| PackError::Read { path: path.to_owned(), source })
}

/// Sorted by path, without times, owners or modes of the machine that packs.
fn zip_of(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, PackError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(6))
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        zip.start_file(path.as_str(), options)?;
        zip.write_all(content)?;
    }
    Ok(zip.finish()?.into_inner())
}
