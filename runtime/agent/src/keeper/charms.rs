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
use periapt_sandbox::{ArtifactError, ArtifactId, ArtifactKey, CompatibilityHash, SealedArtifact, artifact};
use tokio::sync::{OnceCell, Semaphore};

use super::{
    compile::{Compile, CompileError},
    controller::{Controller, ControllerError},
    directories::Directories,
    temporary::{self, Temporary},
};
use crate::protocol::ReadyCharm;

mod failures;
mod files;
#[cfg(test)]
mod tests;

use failures::Failures;

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

/// What is known of one charm.
#[derive(Debug, Default)]
struct Known {
    ready: OnceCell<ReadyCharm>,
    failures: Failures,
}

/// The charms of one agent.
pub(crate) struct Charms<C> {
    controller: C,
    directories: Arc<Directories>,
    compiler: Arc<dyn Compile>,
    engine: CompatibilityHash,
    key: ArtifactKey,
    compiling: Semaphore,
    known: Mutex<BTreeMap<CharmDigest, Arc<Known>>>,
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
            known: Mutex::default(),
            sequence: AtomicU64::new(0),
        }
    }

    /// Sees that a charm is in place. Several callers at a time share the work. After a failure of this host's or of
    /// the controller's the next caller tries anew; a charm that is to blame itself is tried again later and later,
    /// and until then each caller is told what was wrong.
    pub(crate) async fn obtain(&self, digest: CharmDigest) -> Result<ReadyCharm, CharmError> {
        let known = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(digest).or_default())
        };
        known.ready.get_or_try_init(|| self.attempt(digest, &known.failures)).await.cloned()
    }

    async fn attempt(&self, digest: CharmDigest, failures: &Failures) -> Result<ReadyCharm, CharmError> {
        if let Some(refusal) = failures.still_counts() {
            return Err(CharmError::Charm(refusal));
        }
        let made = self.make_ready(digest).await;
        match made {
            Err(CharmError::Charm(refusal)) => Err(CharmError::Charm(failures.failed(digest, refusal))),
            other => other,
        }
    }

    /// Lets go of charms that no unit needs: of their code in memory, and of what is remembered of their failures.
    /// Their files stay for as long as this agent runs.
    pub(crate) fn forget_others(&self, wanted: &BTreeSet<CharmDigest>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|digest, _| wanted.contains(digest));
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
                temporary::remove(&path)?;
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
        let id = ArtifactId { component, engine: self.engine };
        let artefact = match self.open(id).await? {
            Some(artefact) => artefact,
            None => {
                self.compile(digest, &files::component(&directory), id).await?;
                let gone = || CharmError::Away("what was just compiled is not there".to_owned());
                self.open(id).await?.ok_or_else(gone)?
            }
        };
        Ok(ReadyCharm { digest, component, directory, artefact: Some(artefact) })
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

    /// A compiled component, if it is there and is what the helper wrote.
    async fn open(&self, artefact: ArtifactId) -> Result<Option<SealedArtifact>, CharmError> {
        let (directory, key) = (self.directories.artefacts(), self.key.clone());
        blocking(move || match artifact::open(&directory, &artefact, &key) {
            Ok(sealed) => Ok(Some(sealed)),
            Err(ArtifactError::Missing) => Ok(None),
            Err(ArtifactError::Io(error)) => Err(error.into()),
            Err(error) => {
                let file = artefact.file_name();
                tracing::warn!(file, %error, "a compiled component cannot be used, and is made anew");
                temporary::remove(&directory.join(file))?;
                Ok(None)
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

    fn incoming(&self, kind: &str) -> Temporary {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        Temporary::new(self.directories.incoming().join(format!("{number}.{kind}")))
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
