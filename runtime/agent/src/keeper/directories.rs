//! The agent's own directory.
//!
//! | path | content |
//! | --- | --- |
//! | `lock` | the lock of the one agent that uses the directory |
//! | `artefact.key` | the key of the MACs of compiled components; only the agent may read it |
//! | `charms/DIGEST/` | the files of a charm's archive; its component only until it is compiled |
//! | `files/DIGEST` | a file of one or more charms, by its content; theirs are links to it |
//! | `parts/CHARM-ENGINE` | the list of a charm's compiled parts |
//! | `artefacts/DIGEST-ENGINE.cwasm` | a compiled component or shared module, with its MAC |
//! | `resources/MODEL/DIGEST` | the content of a resource |
//! | `images/layers/DIGEST/` | an unpacked layer of images, by the digest of its tar |
//! | `images/owners/DIGEST` | the owners of an image's files, by the digest of its archive |
//! | `storage/MODEL/NAME-NUMBER/` | storage of a model's units, which runners write |
//! | `program`, `programs/DIGEST/periapt` | the note of the agent's own program, and programs that replaced the installed one |
//! | `firewall` | the name of the table that the agent has in the host's firewall |
//! | `holder.sock` | the socket of the process that holds pods while no agent runs |
//! | `pods/NUMBER/` | the files and sockets of a pod that runs, which go with it |
//! | `pod-locks/DIGEST` | the lock that a pod holds while it runs, by the digest of its model, unit and container |
//! | `incoming/` | unfinished downloads, extractions and compilations; emptied at each start |
//!
//! Runners write only to storage and read the charms, WebAssembly workloads read their pod's files; the `/tmp` of hooks is in memory. While no agent runs, everything
//! except storage may be deleted: the agent fetches and compiles it again.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use periapt_host_api::{Digest, ModelUuid};
use periapt_sandbox::CompatibilityHash;

use super::downloads::Downloads;

/// The length of the MACs' key, in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// The directories of charms' files and code.
const KEPT: [&str; 3] = ["charms", "parts", "artefacts"];

/// An error of opening the agent's directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Another agent uses the directory.
    #[error("another agent uses {}; stop it, or give this one a directory of its own", path.display())]
    InUse {
        /// The path of the directory.
        path: PathBuf,
    },
    /// A file or directory in it cannot be created, read or written.
    #[error("cannot use {}", path.display())]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// The system provides no random bytes for the key.
    #[error("the system gives no random bytes")]
    NoRandom(#[source] getrandom::Error),
}

/// Returns the directory of the key of the agent whose own directory this is.
pub(crate) fn identity_in(root: &Path) -> PathBuf {
    root.join("identity")
}

/// The agent's own directory, locked while this value exists.
#[derive(Debug)]
pub(crate) struct Directories {
    root: PathBuf,
    key: [u8; KEY_BYTES],
    downloads: Arc<Downloads>,
    _lock: File,
}

impl Directories {
    /// Creates missing directories and takes the lock.
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
        for name in KEPT.into_iter().chain(["files", "pods", "pod-locks"]) {
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
        Ok(Self { root, key, downloads: Downloads::in_directory(incoming), _lock: lock })
    }

    /// Returns the agent's own directory.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the key of the artifacts' MACs.
    pub(crate) fn key(&self) -> &[u8; KEY_BYTES] {
        &self.key
    }

    /// Returns the directory of the agent's key.
    pub(crate) fn identity(&self) -> PathBuf {
        identity_in(&self.root)
    }

    /// Returns the directory of all charms' files.
    pub(crate) fn charms(&self) -> PathBuf {
        self.root.join("charms")
    }

    /// Returns the directory of a charm's files.
    pub(crate) fn charm(&self, digest: &Digest) -> PathBuf {
        self.charms().join(digest.to_string())
    }

    /// Returns the directory of files that charms share.
    pub(crate) fn shared_files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// Returns the directory of all models' storage, which is created on demand.
    pub(crate) fn storages(&self) -> PathBuf {
        self.root.join("storage")
    }

    /// Returns the directory of a model's storage.
    pub(crate) fn storage(&self, model: &ModelUuid) -> PathBuf {
        self.storages().join(model.to_string())
    }

    /// Returns the directory of a model's resources.
    pub(crate) fn resources(&self, model: &ModelUuid) -> PathBuf {
        self.root.join("resources").join(model.to_string())
    }

    /// Returns the directory of unpacked images, which is created on demand.
    pub(crate) fn images(&self) -> PathBuf {
        self.root.join("images")
    }

    /// Returns the directories of resources of all other models.
    pub(crate) fn other_resources(&self, models: &BTreeSet<ModelUuid>) -> Vec<PathBuf> {
        let kept: BTreeSet<_> = models.iter().map(|model| self.resources(model)).collect();
        let all = fs::read_dir(self.root.join("resources")).into_iter().flatten();
        all.filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| !kept.contains(path))
            .collect()
    }

    /// Returns the path of the list of a charm's compiled parts for an engine.
    pub(crate) fn parts(&self, charm: &Digest, engine: CompatibilityHash) -> PathBuf {
        self.root.join("parts").join(format!("{charm}-{engine}"))
    }

    /// Returns the directory of compiled components.
    pub(crate) fn artefacts(&self) -> PathBuf {
        self.root.join("artefacts")
    }

    /// Returns the directory of the files of pods that run.
    pub(crate) fn pods(&self) -> PathBuf {
        self.root.join("pods")
    }

    /// Returns the directory of the locks of pods.
    pub(crate) fn pod_locks(&self) -> PathBuf {
        self.root.join("pod-locks")
    }

    /// Returns the path of the note of the table in the host's firewall.
    pub(crate) fn firewall_note(&self) -> PathBuf {
        self.root.join("firewall")
    }

    /// Returns the directory of unfinished work.
    pub(crate) fn incoming(&self) -> PathBuf {
        self.root.join("incoming")
    }

    /// Returns the unfinished downloads, whose files are among the unfinished work.
    pub(crate) fn downloads(&self) -> &Arc<Downloads> {
        &self.downloads
    }

    /// Returns the directory in which earlier versions kept shared functions.
    pub(crate) fn former_functions(&self) -> PathBuf {
        self.root.join("functions")
    }

    /// Returns all files and directories of charms and of their code.
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

/// Reads the key; none if the file does not exist or a crash left it incomplete.
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
