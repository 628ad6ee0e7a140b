//! The charms on this host. Concurrent callers share one fetch, extraction and compilation.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use periapt_host_api::{Digest, ErrorCode, Refusal, workloads::MAX_WORKLOAD_COMPONENT};
use periapt_sandbox::CompatibilityHash;
use tokio::sync::Mutex as AsyncMutex;

use super::{
    compile::Compile,
    controller::{Controller, ControllerError},
    directories::Directories,
    downloads::DownloadKey,
    pods::PodFiles,
    temporary,
};
use crate::{options::CompileLimits, protocol::ReadyCharm};

mod failures;
mod files;
mod native;
mod parts;
mod share;
#[cfg(test)]
mod tests;
mod weak;

use failures::Failures;
use native::Native;
use weak::WeakCharm;

/// An error of preparing a charm.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CharmError {
    /// The charm is invalid.
    #[error("{0}")]
    Charm(Refusal),
    /// The controller is unreachable.
    #[error("{0}")]
    Unreachable(String),
    /// A later attempt may succeed: the controller lacks the charm, the archive is damaged, or this host lacks a
    /// resource.
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

/// The state of one charm.
#[derive(Debug, Default)]
struct Known {
    /// The charm, if it is ready. The lock is held while a caller prepares it or loads its code.
    ready: AsyncMutex<Option<WeakCharm>>,
    failures: Failures,
}

/// The charms of one agent.
pub(crate) struct Charms<C> {
    controller: C,
    directories: Arc<Directories>,
    native: Arc<Native>,
    known: Mutex<BTreeMap<Digest, Arc<Known>>>,
}

impl<C: Controller> Charms<C> {
    /// Creates the set of charms in a directory.
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

    /// Prepares a charm: fetches, extracts and compiles it as needed. Concurrent callers share the work. After a
    /// failure, callers get the same error until the next attempt. The wait grows to seconds for a controller that is
    /// away, and to minutes for other errors.
    ///
    /// The charm's code stays in memory while a caller holds it.
    pub(crate) async fn obtain(&self, digest: Digest) -> Result<ReadyCharm, CharmError> {
        let known = self.known(digest);
        let mut ready = known.ready.lock().await;
        if let Some(held) = ready.as_ref().and_then(WeakCharm::upgrade) {
            return Ok(held);
        }
        let obtained = self.attempt(digest, &known.failures).await?;
        *ready = Some(WeakCharm::of(&obtained));
        Ok(obtained)
    }

    /// Fetches and compiles a charm as needed, without loading its code.
    pub(crate) async fn put_in_place(&self, digest: Digest) -> Result<(), CharmError> {
        let known = self.known(digest);
        // Concurrent callers share this work, too.
        let mut ready = known.ready.lock().await;
        if !self.native.lies_here(digest).await? {
            *ready = Some(WeakCharm::of(&self.attempt(digest, &known.failures).await?));
        }
        Ok(())
    }

    /// Returns the path of a workload's component in a charm, which is fetched first if needed. No process writes to a
    /// charm's files.
    async fn workload(&self, digest: Digest, path: &str) -> Result<PathBuf, CharmError> {
        self.put_in_place(digest).await?;
        let component = self.directories.charm(&digest).join(path);
        let found = tokio::fs::symlink_metadata(&component).await?;
        match found.is_file() && found.len() <= MAX_WORKLOAD_COMPONENT {
            true => Ok(component),
            false => Err(CharmError::refused(format!("{path} is no component of a workload"))),
        }
    }

    fn known(&self, digest: Digest) -> Arc<Known> {
        let mut known = self.known.lock();
        Arc::clone(known.entry(digest).or_default())
    }

    async fn attempt(&self, digest: Digest, failures: &Failures) -> Result<ReadyCharm, CharmError> {
        if let Some(error) = failures.still_counts() {
            return Err(error);
        }
        self.make_ready(digest).await.map_err(|error| failures.failed(digest, error))
    }

    /// Forgets the state of charms that no unit needs, including their failures and unfinished downloads. The files stay
    /// until the agent restarts.
    pub(crate) fn forget_others(&self, wanted: &BTreeSet<Digest>) {
        self.known.lock().retain(|digest, _| wanted.contains(digest));
        self.directories.downloads().retain(|key| match key {
            DownloadKey::Charm(digest) => wanted.contains(digest),
            DownloadKey::Resource(..) => true,
        });
    }

    /// Deletes charms and compiled components that no unit needs. The keeper calls this before it starts the first
    /// runner, because a runner may be reading them.
    pub(crate) async fn keep_only(&self, wanted: BTreeSet<Digest>) -> Result<(), CharmError> {
        let (directories, native) = (Arc::clone(&self.directories), Arc::clone(&self.native));
        blocking(move || {
            let mut kept = BTreeSet::new();
            for digest in &wanted {
                kept.insert(directories.charm(digest));
                kept.extend(native.files(*digest));
            }
            for path in directories.kept().into_iter().filter(|path| !kept.contains(path)) {
                temporary::remove(&path)?;
            }
            Ok(share::sweep(&directories.shared_files())?)
        })
        .await
    }

    async fn make_ready(&self, digest: Digest) -> Result<ReadyCharm, CharmError> {
        let directory = self.directories.charm(&digest);
        let component = files::component(&directory);
        let ready = match tokio::fs::try_exists(&directory).await? {
            true => self.native.ready(digest).await?,
            false => None,
        };
        let ready = match ready {
            Some(ready) => ready,
            None => {
                if !tokio::fs::try_exists(&component).await? {
                    self.fetch(digest, &directory).await?;
                }
                self.native.compiled(digest, &directory).await?
            }
        };
        // The compiled code replaces the component.
        blocking(move || Ok(temporary::remove(&component)?)).await?;
        Ok(ready)
    }

    /// Fetches an archive and extracts it. The charm's directory gets its name when it is complete. If it exists
    /// already, only the component was missing.
    async fn fetch(&self, digest: Digest, directory: &Path) -> Result<(), CharmError> {
        tracing::info!(charm = %digest.short(), "fetching a charm");
        let mut download = self.directories.downloads().begin(DownloadKey::Charm(digest)).await?;
        self.controller.charm(digest, download.content()).await?;
        let (archive, extracted) = (download.end().await?, self.native.incoming("files"));
        let (directory, shared) = (directory.to_owned(), self.directories.shared_files());
        blocking(move || {
            files::extract(archive.path(), extracted.path(), &shared)?;
            match directory.try_exists()? {
                false => fs::rename(extracted.path(), &directory)?,
                true => fs::rename(files::component(extracted.path()), files::component(&directory))?,
            }
            Ok(())
        })
        .await
    }
}

impl<C: Controller> PodFiles for Charms<C> {
    fn component<'a>(&'a self, charm: Digest, path: &'a str) -> BoxFuture<'a, Result<PathBuf, String>> {
        Box::pin(async move {
            let component = self.workload(charm, path).await;
            component.map_err(|error| format!("charm {}: {error}", charm.short()))
        })
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
