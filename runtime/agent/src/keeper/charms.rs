//! Charms on this host: fetched, extracted and compiled once, whoever asks first.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use periapt_host_api::{CharmDigest, ErrorCode, Refusal};
use periapt_sandbox::{ArtifactError, ArtifactId, ArtifactKey, CompatibilityHash, artifact};
use tokio::sync::{OnceCell, Semaphore};

use super::{
    compile::{Compile, CompileError},
    controller::{Controller, ControllerError},
    directories::Directories,
};
use crate::protocol::ReadyCharm;

mod files;
#[cfg(test)]
mod tests;

/// Why a charm is not in place.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CharmError {
    /// The charm is to blame.
    #[error("{0}")]
    Charm(Refusal),
    /// It may work later: the controller is away, or this host is short of something.
    #[error("{0}")]
    Away(String),
}

impl CharmError {
    fn refused(message: impl Into<String>) -> Self {
        Self::Charm(Refusal::new(ErrorCode::CharmRefused, message))
    }
}

impl From<io::Error> for CharmError {
    fn from(error: io::Error) -> Self {
        Self::Away(error.to_string())
    }
}

impl From<ControllerError> for CharmError {
    fn from(error: ControllerError) -> Self {
        match error {
            ControllerError::Refused(refusal) => Self::Charm(refusal),
            ControllerError::Away(message) => Self::Away(message),
        }
    }
}

/// The charms of one agent.
pub(crate) struct Charms<C> {
    controller: C,
    directories: Arc<Directories>,
    compiler: Arc<dyn Compile>,
    engine: CompatibilityHash,
    key: ArtifactKey,
    compiling: Semaphore,
    ready: Mutex<BTreeMap<CharmDigest, Arc<OnceCell<ReadyCharm>>>>,
    sequence: AtomicU64,
}

impl<C: Controller> Charms<C> {
    /// Keeps charms in a directory.
    pub(crate) fn new(
        controller: C,
        directories: Arc<Directories>,
        compiler: Arc<dyn Compile>,
        engine: CompatibilityHash,
    ) -> Self {
        let key = ArtifactKey::new(directories.key());
        Self {
            controller,
            directories,
            compiler,
            engine,
            key,
            // One compilation already uses every core.
            compiling: Semaphore::new(1),
            ready: Mutex::default(),
            sequence: AtomicU64::new(0),
        }
    }

    /// Sees that a charm is in place. Several callers at a time share the work; after a failure the next one
    /// tries anew.
    pub(crate) async fn obtain(&self, digest: CharmDigest) -> Result<ReadyCharm, CharmError> {
        let cell = {
            let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(ready.entry(digest).or_default())
        };
        cell.get_or_try_init(|| self.make_ready(digest)).await.cloned()
    }

    /// Deletes charms and compiled components that no unit needs. Called before the first runner starts: later
    /// one could be reading them.
    pub(crate) async fn keep_only(&self, wanted: BTreeSet<CharmDigest>) -> Result<(), CharmError> {
        let (directories, engine) = (Arc::clone(&self.directories), self.engine);
        blocking(move || {
            let mut kept = BTreeSet::new();
            for digest in &wanted {
                let directory = directories.charm(digest);
                if let Ok(component) = files::component_digest(&directory) {
                    kept.insert(directories.artefacts().join(ArtifactId { component, engine }.file_name()));
                }
                kept.insert(directory);
            }
            for path in directories.kept().into_iter().filter(|path| !kept.contains(path)) {
                files::remove(&path)?;
            }
            Ok(())
        })
        .await
    }

    async fn make_ready(&self, digest: CharmDigest) -> Result<ReadyCharm, CharmError> {
        let directory = self.directories.charm(&digest);
        if !tokio::fs::try_exists(&directory).await? {
            self.fetch(digest, &directory).await?;
        }
        let component = {
            let directory = directory.clone();
            blocking(move || Ok(files::component_digest(&directory)?)).await?
        };
        let artefact = ArtifactId { component, engine: self.engine };
        if !self.is_sound(artefact).await? {
            self.compile(digest, &files::component(&directory), artefact).await?;
        }
        Ok(ReadyCharm { digest, component, directory })
    }

    /// Fetches an archive and extracts it; the charm's directory appears when it is complete.
    async fn fetch(&self, digest: CharmDigest, directory: &Path) -> Result<(), CharmError> {
        tracing::info!(charm = %digest.short(), "fetching a charm");
        let (archive, extracted) = (self.incoming("charm"), self.incoming("files"));
        let fetched = self.controller.charm(digest, archive.path()).await;
        let directory = directory.to_owned();
        blocking(move || {
            fetched?;
            files::extract(archive.path(), extracted.path())?;
            Ok(fs::rename(extracted.path(), &directory)?)
        })
        .await
    }

    /// Whether a compiled component is there and is what the helper wrote.
    async fn is_sound(&self, artefact: ArtifactId) -> Result<bool, CharmError> {
        let (directory, key) = (self.directories.artefacts(), self.key.clone());
        blocking(move || match artifact::verify(&directory, &artefact, &key) {
            Ok(()) => Ok(true),
            Err(ArtifactError::Missing) => Ok(false),
            Err(error) => {
                let file = artefact.file_name();
                tracing::warn!(file, %error, "a compiled component cannot be used, and is made anew");
                files::remove(&directory.join(file))?;
                Ok(false)
            }
        })
        .await
    }

    async fn compile(
        &self,
        digest: CharmDigest,
        component: &Path,
        artefact: ArtifactId,
    ) -> Result<(), CharmError> {
        let output = self.incoming("cwasm");
        let started = tokio::time::Instant::now();
        {
            // Never closed, and if it were: without the permit the work is still right.
            let _permit = self.compiling.acquire().await;
            self.compiler.compile(component, output.path()).await.map_err(|error| match error {
                CompileError::Component(message) => {
                    CharmError::refused(format!("charm {} cannot be compiled: {message}", digest.short()))
                }
                CompileError::Host(message) => CharmError::Away(message),
            })?;
        }
        tracing::info!(charm = %digest.short(), ms = started.elapsed().as_millis(), "compiled a component");
        let (directory, key) = (self.directories.artefacts(), self.key.clone());
        blocking(move || {
            let compiled = fs::read(output.path())?;
            artifact::write(&directory, &artefact, &key, &compiled)
                .map_err(|error| CharmError::Away(error.to_string()))?;
            Ok(())
        })
        .await
    }

    fn incoming(&self, kind: &str) -> files::Temporary {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        files::Temporary::new(self.directories.incoming().join(format!("{number}.{kind}")))
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CharmError> + Send + 'static,
) -> Result<T, CharmError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(CharmError::Away(error.to_string())),
    }
}
