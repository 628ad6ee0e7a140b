//! Functions that were compiled for one component and may serve others, on the disk (`docs/decisions/0025-*`).

use std::{
    fs::{self, File},
    io::{self, Read as _, Seek as _},
    os::fd::AsFd as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

use periapt_host_api::CharmDigest;
use periapt_sandbox::{ArtifactError, ArtifactId, ArtifactKey, CompatibilityHash, artifact};

use super::temporary;

/// The smallest component, in bytes, that others may share functions with: an interpreter. A charm in Rust or C compiles in
/// less time than it takes to read what is known.
const SMALLEST_COMPONENT: u64 = 4 << 20;

/// The least that a compilation must have added to be kept, in bytes: what another edition of the same charm adds is less.
const LEAST: usize = 256 << 10;

/// The most that is kept, in bytes. Python's functions take a third of it.
const MOST: u64 = 256 << 20;

/// The functions of one engine.
#[derive(Debug, Clone)]
pub(crate) struct FunctionStore {
    directory: PathBuf,
    engine: CompatibilityHash,
    key: ArtifactKey,
}

impl FunctionStore {
    /// Kept in a directory of the agent's own, under a key of their own, so that none is ever taken for a component.
    pub(crate) fn new(directory: PathBuf, engine: CompatibilityHash, key: &ArtifactKey) -> Self {
        Self { directory, engine, key: key.derived("functions") }
    }

    /// Whether a component of a size is worth it.
    pub(crate) fn serves(bytes: u64) -> bool {
        bytes >= SMALLEST_COMPONENT
    }

    /// All that is known, one compilation after the other, the newest first: of one name the oldest counts, so that what many
    /// charms share already nobody changes. What cannot be read is left out: it is compiled again.
    pub(crate) fn read(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for file in self.files() {
            match self.open(&file) {
                Ok(mut functions) => all.append(&mut functions),
                Err(error) => {
                    tracing::warn!(file = %file.path.display(), %error, "compiled functions cannot be used");
                    let _ = temporary::remove(&file.path);
                }
            }
        }
        all
    }

    /// Keeps what a compilation added, if that is much; the oldest go where it is too much in all.
    pub(crate) fn add(&self, functions: &[u8]) -> Result<(), ArtifactError> {
        if functions.len() < LEAST || functions.len() as u64 > MOST {
            return Ok(());
        }
        let id = ArtifactId { component: CharmDigest::of(functions), engine: self.engine };
        artifact::write(&self.directory, &id, &self.key, functions)?;
        let mut left = MOST;
        for file in self.files() {
            match left.checked_sub(file.bytes) {
                Some(rest) => left = rest,
                None => temporary::remove(&file.path)?,
            }
        }
        Ok(())
    }

    /// Deletes what another engine made.
    pub(crate) fn keep_own(&self) -> io::Result<()> {
        let own = self.suffix();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if !entry.file_name().to_string_lossy().ends_with(&own) {
                temporary::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// This engine's files, the newest first.
    fn files(&self) -> Vec<Kept> {
        let own = self.suffix();
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let mut files: Vec<Kept> = entries.filter_map(|entry| Kept::of(&entry, &own)).collect();
        files.sort_by(|one, other| (other.made, &other.path).cmp(&(one.made, &one.path)));
        files
    }

    fn open(&self, file: &Kept) -> Result<Vec<u8>, ArtifactError> {
        let id = ArtifactId { component: file.digest, engine: self.engine };
        let sealed = artifact::open(&self.directory, &id, &self.key)?;
        let mut memory = File::from(sealed.as_fd().try_clone_to_owned()?);
        memory.rewind()?;
        let mut functions = Vec::new();
        memory.read_to_end(&mut functions)?;
        Ok(functions)
    }

    /// What ends the names of this engine's files.
    fn suffix(&self) -> String {
        let name =
            ArtifactId { component: CharmDigest::from_bytes([0; 32]), engine: self.engine }.file_name();
        name.trim_start_matches('0').to_owned()
    }
}

/// A file of functions.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    /// Of what is in it.
    digest: CharmDigest,
    bytes: u64,
    made: SystemTime,
}

impl Kept {
    fn of(entry: &fs::DirEntry, suffix: &str) -> Option<Self> {
        let name = entry.file_name().into_string().ok()?;
        let digest = name.strip_suffix(suffix)?.parse().ok()?;
        let metadata = entry.metadata().ok()?;
        Some(Self { path: entry.path(), digest, bytes: metadata.len(), made: metadata.modified().ok()? })
    }
}

/// Takes what was added off the end of what a helper wrote: code, functions, and eight bytes that say how many they are.
pub(super) fn take_added(output: &Path) -> io::Result<Vec<u8>> {
    let broken = || io::Error::other("the compile helper's output is cut short");
    let mut file = File::options().read(true).write(true).open(output)?;
    let bytes = file.metadata()?.len();
    let end = bytes.checked_sub(8).ok_or_else(broken)?;
    file.seek(io::SeekFrom::Start(end))?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let code = end.checked_sub(u64::from_le_bytes(length)).ok_or_else(broken)?;
    file.seek(io::SeekFrom::Start(code))?;
    let mut added = Vec::new();
    file.by_ref().take(end - code).read_to_end(&mut added)?;
    file.set_len(code)?;
    Ok(added)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An empty one, of an engine as any.
    pub(crate) fn store(directory: &Path) -> FunctionStore {
        let options = periapt_sandbox::Options { hooks_in_flight: 1, ..periapt_sandbox::Options::default() };
        let engine = periapt_sandbox::Sandbox::new(options).unwrap().compatibility_hash();
        FunctionStore::new(directory.to_owned(), engine, &ArtifactKey::new(&[7; 32]))
    }

    #[test]
    fn what_was_added_is_read_again_and_little_is_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        store.add(&[1; 100]).unwrap();
        assert!(store.read().is_empty());
        store.add(&vec![1; LEAST]).unwrap();
        store.add(&vec![2; LEAST]).unwrap();
        let all = store.read();
        assert_eq!(all.len(), 2 * LEAST);
        assert_eq!(all.iter().filter(|byte| **byte == 1).count(), LEAST);
    }

    #[test]
    fn what_somebody_changed_is_not_read_and_goes() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        store.add(&vec![1; LEAST]).unwrap();
        let path = store.files()[0].path.clone();
        let mut bytes = fs::read(&path).unwrap();
        bytes[5] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(store.read().is_empty());
        assert!(!path.exists());
    }

    #[test]
    fn functions_are_never_taken_for_a_component() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        store.add(&vec![1; LEAST]).unwrap();
        let id = ArtifactId { component: store.files()[0].digest, engine: store.engine };
        let opened = artifact::open(directory.path(), &id, &ArtifactKey::new(&[7; 32]));
        assert!(matches!(opened, Err(ArtifactError::Forged)), "{opened:?}");
    }

    #[test]
    fn together_they_are_bounded_and_those_of_other_engines_go() {
        let directory = tempfile::tempdir().unwrap();
        let store = store(directory.path());
        let quarter = usize::try_from(MOST / 4).unwrap();
        for kind in 0..5 {
            store.add(&vec![kind; quarter]).unwrap();
        }
        let kept: u64 = store.files().iter().map(|file| file.bytes).sum();
        assert!(kept <= MOST && kept > MOST / 2, "{kept}");
        fs::write(directory.path().join("abc-other.cwasm"), "").unwrap();
        store.keep_own().unwrap();
        assert!(!directory.path().join("abc-other.cwasm").exists());
        assert_eq!(store.files().iter().map(|file| file.bytes).sum::<u64>(), kept);
    }

    #[test]
    fn an_output_is_taken_apart_and_one_that_lies_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("output");
        fs::write(&output, [b"code".as_slice(), b"added", &5_u64.to_le_bytes()].concat()).unwrap();
        assert_eq!(take_added(&output).unwrap(), b"added");
        assert_eq!(fs::read(&output).unwrap(), b"code");
        for wrong in [b"short".to_vec(), [b"code".as_slice(), &99_u64.to_le_bytes()].concat()] {
            fs::write(&output, wrong).unwrap();
            take_added(&output).unwrap_err();
        }
    }
}
