//! Archives from charm directories: the same input always gives the same bytes.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Cursor, Read as _, Write as _},
    path::{Path, PathBuf},
};

use periapt_host_api::{
    charm::{CharmFiles, CharmMeta, WorkloadMeta},
    yaml::MAX_DOCUMENT,
};
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use crate::{
    AdaptError, ArchiveError, COMPONENT, InspectError, Inspected, MAX_ARCHIVE, MAX_ENTRIES, MAX_UNPACKED,
    adapt, adapt_workload, check_size, inspect, read::charm_files,
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

/// Directories that are packed with all files: a charm reads them at run time, from `/charm`.
const DIRECTORIES: [&str; 3] = ["files", "templates", "assets"];

/// An archive that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The directory is not a charm's.
    #[error("{} is not a charm: it has neither charmcraft.yaml nor metadata.yaml", .0.display())]
    NotACharm(PathBuf),
    /// A device, a socket or a pipe is in a place for a file.
    #[error("{} is neither a file nor a directory; only these go into an archive", .0.display())]
    NotAFile(PathBuf),
    /// A file name is not UTF-8, as an archive's names must be.
    #[error("{} has a name that is not UTF-8; a file of another name goes into an archive", .0.display())]
    NotText(PathBuf),
    /// A link leads out of the charm's directory: packing it would publish a foreign file.
    #[error(
        "{} is a link to {}, and leads out of {}; replace it with its target",
        link.display(), target.display(), root.display()
    )]
    LeadsOut {
        /// The link, or the path behind one.
        link: PathBuf,
        /// The target as the link has it.
        target: PathBuf,
        /// The directory that links must stay within.
        root: PathBuf,
    },
    /// A link has no target.
    #[error("{} is a link to {}, which does not exist", link.display(), target.display())]
    DeadLink {
        /// The link.
        link: PathBuf,
        /// The target as the link has it.
        target: PathBuf,
    },
    /// A link leads to a directory above it.
    #[error("{} is a link to a directory that it lies in; an archive would have no end", .0.display())]
    Endless(PathBuf),
    /// The files are more than an archive may have.
    #[error("{} has more files than go into an archive: {MAX_ENTRIES} at most", .0.display())]
    TooMany(PathBuf),
    /// The files are larger than an archive may unpack to.
    #[error("{} is too much: the files of an archive have {MAX_UNPACKED} bytes together at most", .0.display())]
    TooMuch(PathBuf),
    /// The code cannot become a component.
    #[error("{}: {source}", path.display())]
    Adapt {
        /// The path of the module.
        path: PathBuf,
        /// The error of the conversion.
        source: AdaptError,
    },
    /// The controller would refuse the archive.
    #[error(transparent)]
    Refused(#[from] InspectError),
    /// The zip library cannot write the archive.
    #[error("cannot write the archive: {0}")]
    Zip(#[from] zip::result::ZipError),
    /// The zip's bytes cannot be written.
    #[error("cannot write the archive: {0}")]
    Write(#[from] std::io::Error),
    /// The archive is too large. Holds its size in bytes.
    #[error("the archive would have {0} bytes; at most {MAX_ARCHIVE} are taken")]
    TooLarge(usize),
}

/// An archive with the result of its inspection.
#[derive(Debug, Clone)]
pub struct Packed {
    /// The archive's bytes.
    pub bytes: Vec<u8>,
    /// The inspection, which gives the controller's view.
    pub inspected: Inspected,
}

/// The files of a new archive, without its component.
#[derive(Debug, Clone, Default)]
pub struct Contents {
    files: BTreeMap<String, Vec<u8>>,
    /// The bytes that were read from the charm's directory.
    read: u64,
    /// The directory that links must stay within. `None` means the directory that is added.
    root: Option<PathBuf>,
}

impl Contents {
    /// Collects the standard files of a charm's directory: its metadata, its licence and icon, the directories that it
    /// reads at run time, and the components of its workloads.
    ///
    /// # Errors
    /// [`PackError::NotACharm`] without metadata, and errors of reading.
    pub fn of(directory: &Path) -> Result<Self, PackError> {
        Self::of_charm_in(directory, directory)
    }

    /// Collects the files of a charm in a repository, like [`Contents::of`]. Links may lead to any file of the
    /// repository, except git's own.
    ///
    /// # Errors
    /// As [`Contents::of`].
    pub fn of_charm_in(repository: &Path, directory: &Path) -> Result<Self, PackError> {
        let failed = |source| PackError::Read { path: repository.to_owned(), source };
        let root = repository.canonicalize().map_err(failed)?;
        let mut contents = Self { root: Some(root), ..Self::default() };
        for name in FILES {
            let path = directory.join(name);
            if path.exists() {
                contents.require_within(directory, &path)?;
                contents.take(name.to_owned(), &path)?;
            }
        }
        if contents.get("charmcraft.yaml").is_none() && contents.get("metadata.yaml").is_none() {
            return Err(PackError::NotACharm(directory.to_owned()));
        }
        for name in DIRECTORIES {
            contents.add_part(directory, name)?;
        }
        // A mistake in the metadata is reported where they are parsed.
        for WorkloadMeta { component, .. } in contents.workloads().unwrap_or_default().into_values() {
            let path = directory.join(&component);
            if contents.get(&component).is_none() && path.exists() {
                contents.require_within(directory, &path)?;
                contents.take(component, &path)?;
            }
        }
        Ok(contents)
    }

    /// Adds a directory of the charm under the same name, if it exists.
    ///
    /// # Errors
    /// As [`Contents::add`], and [`PackError::LeadsOut`].
    pub fn add_part(&mut self, charm: &Path, name: &str) -> Result<(), PackError> {
        let path = charm.join(name);
        if path.exists() {
            self.require_within(charm, &path)?;
            if path.is_dir() {
                self.add(&path, name)?;
            }
        }
        Ok(())
    }

    /// Adds a file, or a directory with all its files, under a path of the archive; the empty path is the archive's
    /// root. Links are followed unless they lead out. Python's compiled caches are left out.
    ///
    /// # Errors
    /// Paths that are neither file nor directory, links that lead out, errors of reading, and more than an archive
    /// may have.
    pub fn add(&mut self, path: &Path, place: &str) -> Result<(), PackError> {
        self.add_below(path, place, &mut Vec::new())
    }

    /// Adds a path that a charm's author names: one that exists below the charm's directory.
    ///
    /// # Errors
    /// As [`Contents::add`].
    pub fn add_named(&mut self, charm: &Path, from: &str, place: &str) -> Result<(), PackError> {
        let path = charm.join(from);
        self.require_within(charm, &path)?;
        self.add(&path, place)
    }

    /// Adds a path. `above` holds the real paths of the directories that are being added.
    fn add_below(&mut self, path: &Path, place: &str, above: &mut Vec<PathBuf>) -> Result<(), PackError> {
        let failed = |source| PackError::Read { path: path.to_owned(), source };
        let metadata = fs::metadata(path).map_err(failed)?;
        if metadata.is_file() {
            return self.take(place.to_owned(), path);
        }
        if !metadata.is_dir() {
            return Err(PackError::NotAFile(path.to_owned()));
        }
        let real = path.canonicalize().map_err(failed)?;
        if above.contains(&real) {
            return Err(PackError::Endless(path.to_owned()));
        }
        above.push(real);
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let name = entry.file_name().into_string().map_err(|_| PackError::NotText(path.clone()))?;
            if name == "__pycache__" {
                continue;
            }
            if entry.file_type().map_err(failed)?.is_symlink() {
                self.require_within(above.first().map_or(path.as_path(), PathBuf::as_path), &path)?;
            }
            let place = if place.is_empty() { name } else { format!("{place}/{name}") };
            self.add_below(&path, &place, above)?;
        }
        above.pop();
        Ok(())
    }

    /// Checks that a path does not lead out by a link, neither itself nor by a directory above it. `default` is the
    /// directory to stay within if none was set.
    fn require_within(&self, default: &Path, path: &Path) -> Result<(), PackError> {
        let failed = |source| PackError::Read { path: path.to_owned(), source };
        let root = match &self.root {
            Some(root) => root.clone(),
            None => default.canonicalize().map_err(failed)?,
        };
        let link = || {
            let link = path.ancestors().find(|part| part.is_symlink()).unwrap_or(path).to_owned();
            let target = fs::read_link(&link).unwrap_or_default();
            (link, target)
        };
        let real = match path.canonicalize() {
            Err(source) if source.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                let (link, target) = link();
                return Err(PackError::DeadLink { link, target });
            }
            real => real.map_err(failed)?,
        };
        match real.strip_prefix(&root) {
            Ok(below) if below.iter().all(|part| part != ".git") => Ok(()),
            _ => {
                let (link, target) = link();
                Err(PackError::LeadsOut { link, target, root })
            }
        }
    }

    /// Reads a file into a path of the archive, within the bounds of an archive.
    ///
    /// # Errors
    /// A path that is no file, errors of reading, and more than an archive may have.
    pub fn take(&mut self, place: String, path: &Path) -> Result<(), PackError> {
        if self.files.len() >= MAX_ENTRIES {
            return Err(PackError::TooMany(path.parent().unwrap_or(path).to_owned()));
        }
        let content = read(path, MAX_UNPACKED.saturating_sub(self.read))?;
        self.read = self.read.saturating_add(content.len() as u64);
        self.insert(place, content);
        Ok(())
    }

    /// Adds or replaces a file.
    pub fn insert(&mut self, path: impl Into<String>, content: Vec<u8>) {
        self.files.insert(path.into(), content);
    }

    /// Removes a file, if it exists.
    pub fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    /// Keeps the files whose paths meet a condition.
    pub fn retain(&mut self, wanted: impl Fn(&str) -> bool) {
        self.files.retain(|path, _| wanted(path));
    }

    /// Returns a file's content.
    pub fn get(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Returns all files by path.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, content)| (path.as_str(), content.as_slice()))
    }

    /// Parses the charm's metadata.
    ///
    /// # Errors
    /// [`PackError::Refused`], as for an archive of these files.
    pub fn meta(&self) -> Result<CharmMeta, PackError> {
        self.parsed().map_err(PackError::Refused)
    }

    /// Packs the files with the charm's code: a component, or a WASI preview 1 module that is adapted.
    ///
    /// # Errors
    /// [`PackError`], also for a charm that the controller would refuse.
    pub fn pack(self, wasm: &Path) -> Result<Packed, PackError> {
        self.pack_code(wasm, &read(wasm, MAX_UNPACKED)?)
    }

    fn parsed(&self) -> Result<CharmMeta, InspectError> {
        Ok(CharmMeta::parse(&self.charm_files()?)?)
    }

    fn charm_files(&self) -> Result<CharmFiles, ArchiveError> {
        charm_files(|path| match self.get(path) {
            Some(text) if text.len() > MAX_DOCUMENT => Err(ArchiveError::LongText(path, text.len() as u64)),
            text => Ok(text.map(<[u8]>::to_vec)),
        })
    }

    /// Returns the workloads that the metadata declares.
    fn workloads(&self) -> Result<BTreeMap<String, WorkloadMeta>, InspectError> {
        Ok(self.charm_files()?.workloads()?)
    }

    /// Replaces the modules of workloads by components. [`inspect`] reports what is missing.
    fn adapt_workloads(&mut self) -> Result<(), PackError> {
        for (name, WorkloadMeta { component: path, .. }) in self.workloads()? {
            let Some(module) = self.get(&path) else { continue };
            check_size(&name, &path, module.len() as u64)?;
            let component = adapt_workload(module)
                .map_err(|source| PackError::Adapt { path: path.clone().into(), source })?;
            self.insert(path, component);
        }
        Ok(())
    }

    fn pack_code(mut self, name: &Path, wasm: &[u8]) -> Result<Packed, PackError> {
        let component = adapt(wasm).map_err(|source| PackError::Adapt { path: name.to_owned(), source })?;
        self.insert(COMPONENT, component);
        self.adapt_workloads()?;
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
/// [`PackError`], also for a charm that the controller would refuse.
pub fn pack(directory: &Path, wasm: &Path) -> Result<Packed, PackError> {
    Contents::of(directory)?.pack(wasm)
}

/// Packs code from memory, and generated files. The files replace the directory's files of the same path. `name` is
/// the code's name in errors.
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

/// Reads a file of at most so many bytes. Refuses devices and pipes, whose reading may never end.
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
    // The file may grow meanwhile.
    let file = fs::File::open(path).map_err(failed)?;
    file.take(most.saturating_add(1)).read_to_end(&mut content).map_err(failed)?;
    match content.len() as u64 > most {
        true => Err(PackError::TooMuch(path.to_owned())),
        false => Ok(content),
    }
}

/// Writes a zip, sorted by path, without times, owners or modes of the packing machine.
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

    /// Creates a charm's directory, and foreign files beside it.
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
            assert!(
                matches!(&refused, PackError::LeadsOut { link: path, .. } if path.ends_with(link)),
                "{refused}"
            );
        }
        let (place, charm) = charm();
        symlink("../../../outside", charm.join("files/own/there")).unwrap();
        let refused = Contents::of(&charm).unwrap_err();
        let link = charm.join("files/own/there").display().to_string();
        assert_eq!(
            refused.to_string(),
            format!(
                "{link} is a link to ../../../outside, and leads out of {}; replace it with its target",
                charm.canonicalize().unwrap().display()
            )
        );
        // Links may lead to files of the surrounding repository, except git's own.
        let contents = Contents::of_charm_in(place.path(), &charm).unwrap();
        assert_eq!(contents.get("files/own/there/key"), Some(b"secret".as_slice()));
        fs::create_dir(place.path().join(".git")).unwrap();
        symlink("../../../.git", charm.join("files/own/git")).unwrap();
        assert!(matches!(Contents::of_charm_in(place.path(), &charm), Err(PackError::LeadsOut { .. })));
    }

    #[test]
    fn a_link_to_nothing_or_to_what_it_lies_in_is_told() {
        let (_place, charm) = charm();
        symlink("../nowhere", charm.join("files/own/there")).unwrap();
        let refused = Contents::of(&charm).unwrap_err().to_string();
        assert!(
            refused.ends_with("files/own/there is a link to ../nowhere, which does not exist"),
            "{refused}"
        );
        fs::remove_file(charm.join("files/own/there")).unwrap();
        symlink("..", charm.join("files/own/there")).unwrap();
        assert!(matches!(Contents::of(&charm).unwrap_err(), PackError::Endless(_)));
    }

    #[test]
    fn a_link_within_the_charm_is_followed() {
        let (_place, charm) = charm();
        fs::write(charm.join("files/text"), "own").unwrap();
        symlink("files/text", charm.join("README.md")).unwrap();
        symlink("files", charm.join("templates")).unwrap();
        symlink("../text", charm.join("files/own/again")).unwrap();
        let contents = Contents::of(&charm).unwrap();
        assert_eq!(contents.get("README.md"), Some(b"own".as_slice()));
        assert_eq!(contents.get("templates/text"), Some(b"own".as_slice()));
        assert_eq!(contents.get("files/own/again"), Some(b"own".as_slice()));
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
