//! Compiled components of one's own charms, kept between processes: a Python charm takes ten seconds to compile.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use periapt_host_api::CharmDigest;
use periapt_sandbox::{ArtifactError, ArtifactId, ArtifactKey, Loaded, Sandbox, artifact};

use crate::TrialError;

/// A directory of compiled components, for one user. Its key lies in it, readable by that user alone: it tells files that
/// this user's own processes made from files that were damaged, or put there by somebody who can write and not read.
#[derive(Debug)]
pub struct CompiledCache {
    directory: PathBuf,
    key: ArtifactKey,
}

impl CompiledCache {
    /// Opens a cache, or begins one.
    ///
    /// # Errors
    /// The directory cannot be made or used.
    pub fn open(directory: &Path) -> Result<Self, TrialError> {
        let key = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .and_then(|()| key(&directory.join("key")))
            .map_err(|source| TrialError::Cache { path: directory.to_owned(), source })?;
        Ok(Self { directory: directory.to_owned(), key: ArtifactKey::new(&key) })
    }

    /// A component in native code: as it lies here, or compiled and then kept.
    pub(crate) fn load(&self, sandbox: &Sandbox, component: &[u8]) -> Result<Loaded, TrialError> {
        let id = ArtifactId { component: CharmDigest::of(component), engine: sandbox.compatibility_hash() };
        match artifact::open(&self.directory, &id, &self.key).and_then(|sealed| sandbox.load(&sealed)) {
            Ok(loaded) => return Ok(loaded),
            // Whatever is wrong with the file: it is made anew.
            Err(ArtifactError::Missing | ArtifactError::Forged | ArtifactError::Engine(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let compiled = sandbox.compile(component)?;
        artifact::write(&self.directory, &id, &self.key, &compiled)?;
        Ok(sandbox.load(&artifact::open(&self.directory, &id, &self.key)?)?)
    }
}

/// The key of a cache; the first who asks draws it. It appears whole: two that begin at once agree on one.
fn key(path: &Path) -> io::Result<[u8; 32]> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    let mut drawn = [0; 32];
    getrandom::fill(&mut drawn).map_err(io::Error::other)?;
    let temporary = path.with_extension(std::process::id().to_string());
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?.write_all(&drawn)?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => read(path),
    }
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    let mut key = [0; 32];
    fs::File::open(path)?.read_exact(&mut key)?;
    Ok(key)
}
