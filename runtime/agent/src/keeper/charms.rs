//! Charms on this host: fetched, extracted and compiled once, whoever asks first.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use periapt_host_api::{CharmDigest, ErrorCode, Refusal};
use periapt_sandbox::CompatibilityHash;
use tokio::sync::OnceCell;

use super::{
    compile::Compile,
    controller::{Controller, ControllerError},
    directories::Directories,
    temporary,
};
use crate::{options::CompileLimits, protocol::ReadyCharm};

mod failures;
mod files;
mod native;
#[cfg(test)]
mod tests;

use failures::Failures;
use native::Native;

/// Why a charm is not in place.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CharmError {
    /// The charm is to blame.
    #[error("{0}")]
    Charm(Refusal),
    /// The controller is away.
    #[error("{0}")]
    Unreachable(String),
    /// It may work later: the controller has no such charm, what came is damaged, or this host is short of something.
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
            ControllerError::Refused(refusal) => Self::Away(refusal.message),
            ControllerError::Away(message) => Self::Unreachable(message),
            ControllerError::Unusable(message) => Self::Away(message),
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
    native: Arc<Native>,
    known: Mutex<BTreeMap<CharmDigest, Arc<Known>>>,
}

impl<C: Controller> Charms<C> {
    /// Keeps charms in a directory.
    pub(crate) fn new(
        controller: C,
        directories: Arc<Directories>,
        compiler: Arc<dyn Compile>,
        engine: CompatibilityHash,
        limits: CompileLimits,
    ) -> Self {
        let native = Arc::new(Native::new(Arc::clone(&directories), compiler, engine, limits));
        Self { controller, directories, native, known: Mutex::default() }
    }

    /// Sees that a charm is in place. Several callers at a time share the work. What failed is tried again later and
    /// later, and until then each caller is told what was wrong: a controller that is away is asked within
    /// seconds, everything else is tried again within minutes.
    pub(crate) async fn obtain(&self, digest: CharmDigest) -> Result<ReadyCharm, CharmError> {
        let known = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(digest).or_default())
        };
        known.ready.get_or_try_init(|| self.attempt(digest, &known.failures)).await.cloned()
    }

    async fn attempt(&self, digest: CharmDigest, failures: &Failures) -> Result<ReadyCharm, CharmError> {
        if let Some(error) = failures.still_counts() {
            return Err(error);
        }
        self.make_ready(digest).await.map_err(|error| failures.failed(digest, error))
    }

    /// Lets go of charms that no unit needs: of their code in memory, and of what is remembered of their failures.
    /// Their files stay for as long as this agent runs.
    pub(crate) fn forget_others(&self, wanted: &BTreeSet<CharmDigest>) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|digest, _| wanted.contains(digest));
    }

    /// Deletes charms and compiled components that no unit needs. Called before the first runner starts: later
    /// one could be reading them.
    pub(crate) async fn keep_only(&self, wanted: BTreeSet<CharmDigest>) -> Result<(), CharmError> {
        let (directories, native) = (Arc::clone(&self.directories), Arc::clone(&self.native));
        blocking(move || {
            let mut kept = BTreeSet::new();
            for digest in &wanted {
                let directory = directories.charm(digest);
                kept.extend(native.files(&directory));
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
        let parts = self.native.parts(&directory).await?;
        let (artefact, modules) = self.native.code(digest, &parts, &directory).await?;
        let artefact = Some(artefact);
        Ok(ReadyCharm { digest, component: parts.component, directory, artefact, modules })
    }

    /// Fetches an archive and extracts it; the charm's directory appears when it is complete.
    async fn fetch(&self, digest: CharmDigest, directory: &Path) -> Result<(), CharmError> {
        tracing::info!(charm = %digest.short(), "fetching a charm");
        let (archive, extracted) = (self.native.incoming("charm"), self.native.incoming("files"));
        let fetched = self.controller.charm(digest, archive.path()).await;
        let directory = directory.to_owned();
        blocking(move || {
            fetched?;
            files::extract(archive.path(), extracted.path())?;
            Ok(fs::rename(extracted.path(), &directory)?)
        })
        .await
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
