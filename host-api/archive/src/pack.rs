//! Making an archive: the same input always gives the same bytes.

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Read as _, Write as _},
    path::{Path, PathBuf},
};

use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use crate::{
    AdaptError, COMPONENT, InspectError, Inspected, MAX_ARCHIVE, MAX_ENTRIES, MAX_UNPACKED, adapt, inspect,
};

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
    /// A name that is not text: an archive's names are.
    #[error("{} has a name that is not UTF-8; a file of another name goes into an archive", .0.display())]
    NotText(PathBuf),
    /// A link to something that is not the charm's: whoever packs it would give it away.
    #[error("{} leads out of the charm's directory; only what lies in it goes into an archive", .0.display())]
    LeadsOut(PathBuf),
    /// More files than an archive may have.
    #[error("{} has more files than go into an archive: {MAX_ENTRIES} at most", .0.display())]
    TooMany(PathBuf),
    /// Larger files than an archive may have.
    #[error("{} is too much: the files of an archive have {MAX_UNPACKED} bytes together at most", .0.display())]
    TooMuch(PathBuf),
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
    /// How many bytes were read from the charm's directory.
    read: u64,
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
            if is_within(directory, &path)? {
                contents.take(name.to_owned(), &path)?;
            }
        }
        if contents.get("charmcraft.yaml").is_none() && contents.get("metadata.yaml").is_none() {
            return Err(PackError::NotACharm(directory.to_owned()));
        }
        for name in DIRECTORIES {
            contents.add_part(directory, name)?;
        }
        Ok(contents)
    }

    /// Adds a directory of a charm's, if it has one of that name, under the same name.
    ///
    /// # Errors
    /// As [`Contents::add`], and [`PackError::LeadsOut`].
    pub fn add_part(&mut self, charm: &Path, name: &str) -> Result<(), PackError> {
        let path = charm.join(name);
        if is_within(charm, &path)? && path.is_dir() {
            self.add(&path, name)?;
        }
        Ok(())
    }

    /// Adds a directory with all that it holds, under a path of the archive. What Python compiled on the packer's machine
    /// stays there.
    ///
    /// # Errors
    /// What is neither a file nor a directory, what cannot be read, and more than an archive takes.
    pub fn add(&mut self, directory: &Path, place: &str) -> Result<(), PackError> {
        let failed = |source| PackError::Read { path: directory.to_owned(), source };
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|_| PackError::NotText(path.clone()))?;
            let kind = entry.file_type().map_err(failed)?;
            if name == "__pycache__" {
                continue;
            }
            let place = format!("{place}/{name}");
            if kind.is_dir() {
                self.add(&path, &place)?;
            } else if kind.is_file() {
                self.take(place, &path)?;
            } else {
                return Err(PackError::NotAFile(path));
            }
        }
        Ok(())
    }

    /// Reads a file into a path of the archive, as long as all together are no more than an archive takes.
    ///
    /// # Errors
    /// What is no file, what cannot be read, and more than an archive takes.
    pub fn take(&mut self, place: String, path: &Path) -> Result<(), PackError> {
        if self.files.len() >= MAX_ENTRIES {
            return Err(PackError::TooMany(path.parent().unwrap_or(path).to_owned()));
        }
        let content = read(path, MAX_UNPACKED.saturating_sub(self.read))?;
        self.read = self.read.saturating_add(content.len() as u64);
        self.insert(place, content);
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

    /// Leaves out the files whose paths do not meet a condition.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.files.retain(|path, _| wanted(path));
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
        self.pack_code(wasm, &read(wasm, MAX_UNPACKED)?)
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

/// Whether something is there. A link may lead elsewhere in the charm's directory, and not out of it.
fn is_within(charm: &Path, path: &Path) -> Result<bool, PackError> {
    let failed = |source| PackError::Read { path: path.to_owned(), source };
    if !path.exists() {
        return Ok(false);
    }
    let (charm, real) = (charm.canonicalize().map_err(failed)?, path.canonicalize().map_err(failed)?);
    if real.starts_with(charm) { Ok(true) } else { Err(PackError::LeadsOut(path.to_owned())) }
}

/// Reads a file of at most so many bytes. Not what ends never, nor what waits for somebody who writes.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, PackError> {
    let failed = |source| PackError::Read { path: path.to_owned(), source };
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(PackError::NotAFile(path.to_owned()));
    }
    if metadata.len() > most {
        return Err(PackError::TooMuch(path.to_owned()));
    }
    let mut content = Vec::new();
    // It may grow meanwhile.
    let file = fs::File::open(path).map_err(failed)?;
    file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(failed)?;
    match content.len() as u64 > most {
        true => Err(PackError::TooMuch(path.to_owned())),
        false => Ok(content),
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A charm's directory, and beside it what is not the charm's.
    fn charm() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let charm = place.path().join("charm");
        fs::create_dir_all(charm.join("files/own")).unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("outside/key"), "secret").unwrap();
        fs::write(charm.join("charmcraft.yaml"), "name: c\n").unwrap();
        (place, charm)
    }

    #[test]
    fn what_a_link_leads_to_outside_is_not_packed() {
        for (link, target) in [
            ("config.yaml", "../outside/key"),
            ("README.md", "/etc/hostname"),
            ("templates", "../outside"),
            ("assets", "/etc"),
        ] {
            let (_place, charm) = charm();
            symlink(target, charm.join(link)).unwrap();
            let refused = Contents::of(&charm).unwrap_err();
            assert!(matches!(&refused, PackError::LeadsOut(path) if path.ends_with(link)), "{refused}");
        }
        let (_place, charm) = charm();
        symlink("../../outside", charm.join("files/own/there")).unwrap();
        assert!(matches!(Contents::of(&charm).unwrap_err(), PackError::NotAFile(_)));
    }

    #[test]
    fn a_link_within_the_charm_is_followed() {
        let (_place, charm) = charm();
        fs::write(charm.join("files/text"), "own").unwrap();
        symlink("files/text", charm.join("README.md")).unwrap();
        symlink("files", charm.join("templates")).unwrap();
        let contents = Contents::of(&charm).unwrap();
        assert_eq!(contents.get("README.md"), Some(b"own".as_slice()));
        assert_eq!(contents.get("templates/text"), Some(b"own".as_slice()));
    }

    #[test]
    fn a_name_that_is_not_text_is_not_packed_under_another() {
        use std::os::unix::ffi::OsStrExt as _;
        let (_place, charm) = charm();
        fs::write(charm.join("files").join(std::ffi::OsStr::from_bytes(b"\xff")), "").unwrap();
        assert!(matches!(Contents::of(&charm).unwrap_err(), PackError::NotText(_)));
    }

    #[test]
    fn a_pipe_is_not_waited_for() {
        let (_place, charm) = charm();
        fs::remove_file(charm.join("charmcraft.yaml")).unwrap();
        let done = std::process::Command::new("mkfifo").arg(charm.join("charmcraft.yaml")).status().unwrap();
        assert!(done.success());
        assert!(matches!(Contents::of(&charm).unwrap_err(), PackError::NotAFile(_)));
    }
}
