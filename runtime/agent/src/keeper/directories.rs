//! The agent's own directory.
//!
//! | path | what |
//! | --- | --- |
//! | `lock` | held by the one agent that uses the directory |
//! | `artefact.key` | the key of the MACs of compiled components; readable by the agent alone |
//! | `charms/DIGEST/` | the files of a charm's archive; its component only until that is compiled |
//! | `files/DIGEST` | a file that charms have, by its content; theirs are links to it |
//! | `parts/CHARM-ENGINE` | which compiled parts a charm has |
//! | `artefacts/DIGEST-ENGINE.cwasm` | a compiled component, or a module that components share, with its MAC |
//! | `resources/MODEL/DIGEST` | the content of a resource |
//! | `storage/MODEL/NAME-NUMBER/` | storage of a model's units, which runners write |
//! | `incoming/` | what is being fetched, extracted or compiled; emptied at each start |
//!
//! But for storage runners only read here; hooks' `/tmp` is memory. All but storage can be deleted while no agent runs:
//! it is fetched and compiled again.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use periapt_host_api::{Digest, ModelUuid};
use periapt_sandbox::CompatibilityHash;

/// Bytes of the MAC's key.
pub(crate) const KEY_BYTES: usize = 32;

/// What is kept of charms, in directories of these names.
const KEPT: [&str; 3] = ["charms", "parts", "artefacts"];

/// Why the agent's directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another agent uses it.
    #[error("another agent uses {}; stop it, or give this one a directory of its own", path.display())]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// A file or directory in it cannot be made, read or written.
    #[error("cannot use {}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The system gives no random bytes for the key.
    #[error("the system gives no random bytes")]
    NoRandom(#[source] getrandom::Error),
}

/// The agent's own directory, locked for as long as this lives.
#[derive(Debug)]
pub(crate) struct Directories {
    root: PathBuf,
    key: [u8; KEY_BYTES],
    _lock: File,
}

impl Directories {
    /// Makes what is missing and takes the lock.
    pub(crate) fn open(root: &Path) -> Result<Self, DirectoryError> {
        let unusable = |path: &Path| {
            let path = path.to_owned();
            move |source| DirectoryError::Unusable { path, source }
        };
        private_directory(root).map_err(unusable(root))?;
        let root = root.canonicalize().map_err(unusable(root))?;
        let lock_path = root.join("lock");
        let lock = private_file(&lock_path).open(&lock_path).map_err(unusable(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(DirectoryError::InUse { path: root }),
            Err(fs::TryLockError::Error(source)) => {
                return Err(DirectoryError::Unusable { path: lock_path, source });
            }
        }
        let incoming = root.join("incoming");
        emptied(&incoming).map_err(unusable(&incoming))?;
        for name in KEPT.into_iter().chain(["files"]) {
            let path = root.join(name);
            private_directory(&path).map_err(unusable(&path))?;
        }
        let key_path = root.join("artefact.key");
        let key = match read_key(&key_path).map_err(unusable(&key_path))? {
            Some(key) => key,
            None => {
                let mut key = [0; KEY_BYTES];
                getrandom::fill(&mut key).map_err(DirectoryError::NoRandom)?;
                write_key(&key_path, &key).map_err(unusable(&key_path))?;
                key
            }
        };
        Ok(Self { root, key, _lock: lock })
    }

    /// The key of the artefacts' MACs.
    pub(crate) fn key(&self) -> &[u8; KEY_BYTES] {
        &self.key
    }

    /// Where all charms' files lie.
    pub(crate) fn charms(&self) -> PathBuf {
        self.root.join("charms")
    }

    /// Where a charm's files lie.
    pub(crate) fn charm(&self, digest: &Digest) -> PathBuf {
        self.charms().join(digest.to_string())
    }

    /// Where the files lie that charms share.
    pub(crate) fn shared_files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// Where the storage of all models lies; it is made when there is some.
    pub(crate) fn storages(&self) -> PathBuf {
        self.root.join("storage")
    }

    /// Where the storage of a model's units lies.
    pub(crate) fn storage(&self, model: &ModelUuid) -> PathBuf {
        self.storages().join(model.to_string())
    }

    /// Where the resources of a model lie.
    pub(crate) fn resources(&self, model: &ModelUuid) -> PathBuf {
        self.root.join("resources").join(model.to_string())
    }

    /// The directories of all models' resources but these.
    pub(crate) fn other_resources(&self, models: &BTreeSet<ModelUuid>) -> Vec<PathBuf> {
        let kept: BTreeSet<_> = models.iter().map(|model| self.resources(model)).collect();
        let all = fs::read_dir(self.root.join("resources")).into_iter().flatten();
        all.filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| !kept.contains(path))
            .collect()
    }

    /// Which compiled parts a charm has on an engine.
    pub(crate) fn parts(&self, charm: &Digest, engine: CompatibilityHash) -> PathBuf {
        self.root.join("parts").join(format!("{charm}-{engine}"))
    }

    /// Where compiled components lie.
    pub(crate) fn artefacts(&self) -> PathBuf {
        self.root.join("artefacts")
    }

    /// Where things are made before they are moved to their place.
    pub(crate) fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    /// Where functions lay that compiled components shared, before there were modules.
    pub(crate) fn former_functions(&self) -> PathBuf {
        self.root.join("functions")
    }

    /// All that is kept of charms, by the names of files.
    pub(crate) fn kept(&self) -> Vec<PathBuf> {
        KEPT.iter()
            .filter_map(|name| fs::read_dir(self.root.join(name)).ok())
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .collect()
    }
}

pub(crate) fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn private_file(path: &Path) -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    tracing::trace!(path = %path.display(), "opening");
    options
}

fn emptied(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    private_directory(path)
}

/// The key in the file; none if there is no file, or a crash left a part of one.
fn read_key(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::with_capacity(KEY_BYTES);
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes.try_into().ok())
}

fn write_key(path: &Path, key: &[u8; KEY_BYTES]) -> io::Result<()> {
    let mut file = private_file(path).open(path)?;
    file.set_len(0)?;
    file.write_all(key)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_agent_cannot_use_the_directory_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        let first = Directories::open(root.path()).unwrap();
        let second = Directories::open(root.path()).unwrap_err();
        assert!(second.to_string().contains("another agent uses"), "{second}");
        drop(first);
        Directories::open(root.path()).unwrap();
    }

    #[test]
    fn the_key_stays_and_unfinished_work_goes() {
        let root = tempfile::tempdir().unwrap();
        let first = Directories::open(root.path()).unwrap();
        let key = *first.key();
        fs::write(first.incoming().join("half"), "half").unwrap();
        drop(first);
        let second = Directories::open(root.path()).unwrap();
        assert_eq!(*second.key(), key);
        assert!(!second.incoming().join("half").exists());
    }

    #[test]
    fn half_a_key_is_replaced() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("artefact.key"), "short").unwrap();
        let directories = Directories::open(root.path()).unwrap();
        assert_eq!(fs::read(root.path().join("artefact.key")).unwrap(), directories.key());
    }
}
