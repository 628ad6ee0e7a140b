//! A cache of compiled components of the user's own charms, across processes: a Python charm takes ten seconds to
//! compile.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use periapt_archive::guarded_with_workers;
use periapt_host_api::Digest;
use periapt_sandbox::{
    ArtifactError, ArtifactId, ArtifactKey, CompileError, LoadedComponent, Sandbox, SealedArtifact, artifact,
    shared_modules,
};

use crate::TrialError;

/// A directory of compiled components, for one user. It holds its key, readable by that user alone. The key tells this
/// user's own files from damaged ones, and from those of other users who can write there and not read.
#[derive(Debug)]
pub struct CompiledCache {
    directory: PathBuf,
    key: ArtifactKey,
}

impl CompiledCache {
    /// Opens a cache, or creates it.
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

    /// Loads a component in native code from the cache, or compiles and stores it. Modules that it shares with other
    /// components are compiled once.
    pub(crate) fn load(&self, sandbox: &Sandbox, component: &[u8]) -> Result<LoadedComponent, TrialError> {
        let modules = guarded_with_workers(|| shared_modules(component))?;
        let mut kept = Vec::new();
        for module in &modules {
            let (key, bytes) = (self.key.derived("module"), module.bytes(component));
            let compiled = self.part(sandbox, &key, module.digest, || sandbox.compile_module(bytes))?;
            kept.push((module.digest, compiled));
        }
        let digest = Digest::of(component);
        let whole = self.part(sandbox, &self.key, digest, || sandbox.compile(component))?;
        Ok(sandbox.load(&whole, &kept)?)
    }

    fn part(
        &self,
        sandbox: &Sandbox,
        key: &ArtifactKey,
        digest: Digest,
        compile: impl FnOnce() -> Result<Vec<u8>, CompileError>,
    ) -> Result<SealedArtifact, TrialError> {
        let id = ArtifactId { component: digest, engine: sandbox.compatibility_hash() };
        match artifact::open(&self.directory, &id, key) {
            Ok(sealed) => return Ok(sealed),
            // A missing or damaged file is made anew.
            Err(ArtifactError::Missing | ArtifactError::Forged) => {}
            Err(error) => return Err(error.into()),
        }
        artifact::write(&self.directory, &id, key, &guarded_with_workers(compile)??)?;
        Ok(artifact::open(&self.directory, &id, key)?)
    }
}

/// Returns the key of a cache, and draws it on first use. The file appears whole, so two processes that start at once
/// agree on one key.
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

#[cfg(test)]
mod tests {
    use periapt_sandbox::Options;

    use super::*;

    #[test]
    fn a_compiler_that_panics_is_one_error_and_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let cache = CompiledCache::open(directory.path()).unwrap();
        let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
        let before = fs::read_dir(directory.path()).unwrap().count();
        let digest = Digest::of(b"a component");
        let made = cache.part(&sandbox, &cache.key, digest, || panic!("unreachable block {}", 7));
        let error = made.map(drop).unwrap_err();
        let told =
            "the component cannot be compiled here, because of a defect of the compiler: unreachable block 7";
        assert_eq!(error.to_string(), told);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), before);
    }
}
