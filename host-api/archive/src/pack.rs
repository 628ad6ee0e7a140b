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

/// Packs a charm's directory with its code: a component, or a WASI preview 1 module that is adapted.
///
/// # Errors
/// [`PackError`]; what would be refused at deploy is refused here.
pub fn pack(directory: &Path, wasm: &Path) -> Result<Packed, PackError> {
    pack_with(directory, wasm, &read(wasm)?, BTreeMap::new())
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
    let mut files = BTreeMap::new();
    for name in FILES {
        let path = directory.join(name);
        if path.exists() {
            files.insert(name.to_owned(), read(&path)?);
        }
    }
    if !files.contains_key("charmcraft.yaml") && !files.contains_key("metadata.yaml") {
        return Err(PackError::NotACharm(directory.to_owned()));
    }
    for name in DIRECTORIES {
        let path = directory.join(name);
        if path.is_dir() {
            collect(&path, name, &mut files)?;
        }
    }
    files.extend(made);
    let component = adapt(wasm).map_err(|source| PackError::Adapt { path: name.to_owned(), source })?;
    files.insert(COMPONENT.to_owned(), component);
    let bytes = zip_of(&files)?;
    if bytes.len() > MAX_ARCHIVE {
        return Err(PackError::TooLarge(bytes.len()));
    }
    let inspected = inspect(&bytes)?;
    Ok(Packed { bytes, inspected })
}

fn collect(directory: &Path, name: &str, files: &mut BTreeMap<String, Vec<u8>>) -> Result<(), PackError> {
    let failed = |source| PackError::Read { path: directory.to_owned(), source };
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            collect(&path, &name, files)?;
        } else if kind.is_file() {
            files.insert(name, read(&path)?);
        } else {
            return Err(PackError::NotAFile(path));
        }
    }
    Ok(())
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
