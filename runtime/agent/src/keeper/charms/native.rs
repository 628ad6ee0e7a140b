//! Native code on this host: compiled once, whoever asks first, and checked whenever it is read.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use periapt_host_api::CharmDigest;
use periapt_sandbox::{
    ArtifactError, ArtifactId, ArtifactKey, CompatibilityHash, SealedArtifact, SharedModule, WeakArtifact,
    artifact,
};
use tokio::sync::Semaphore;

use super::{
    CharmError, blocking,
    files::{self, Parts},
};
use crate::{
    helper::Part,
    keeper::{
        compile::{Compile, CompileError},
        directories::Directories,
        temporary::{self, Temporary},
    },
    options::CompileLimits,
    protocol::ReadyModule,
};

/// Charms' components and the modules that they share, in native code.
pub(super) struct Native {
    directories: Arc<Directories>,
    compiler: Arc<dyn Compile>,
    engine: CompatibilityHash,
    /// For all parts of a charm together.
    limits: CompileLimits,
    /// Of components, and of modules: what was compiled as one is never taken for the other.
    keys: [ArtifactKey; 2],
    /// Permits: one component is read whole at a time, however many charms are asked for at once.
    reading: Semaphore,
    /// And one part compiled, which uses every core.
    compiling: Semaphore,
    /// Modules that a charm has in memory: the next one takes the same memory.
    modules: Mutex<BTreeMap<CharmDigest, WeakArtifact>>,
    sequence: AtomicU64,
}

/// A charm whose code is to be made ready.
struct Work<'a> {
    charm: CharmDigest,
    component: &'a Path,
    /// What is left of them for the parts that are still to be compiled.
    limits: CompileLimits,
}

impl Native {
    pub(super) fn new(
        directories: Arc<Directories>,
        compiler: Arc<dyn Compile>,
        engine: CompatibilityHash,
        limits: CompileLimits,
    ) -> Self {
        let key = ArtifactKey::new(directories.key());
        Self {
            directories,
            compiler,
            engine,
            limits,
            keys: [key.clone(), key.derived("module")],
            reading: Semaphore::new(1),
            compiling: Semaphore::new(1),
            modules: Mutex::default(),
            sequence: AtomicU64::new(0),
        }
    }

    /// What of a charm is compiled.
    pub(super) async fn parts(&self, directory: &Path) -> Result<Parts, CharmError> {
        // Never closed, and if it were: without the permit the work is still right.
        let _permit = self.reading.acquire().await;
        let (directory, most) = (directory.to_owned(), self.limits.component);
        blocking(move || files::parts(&directory, most)).await
    }

    /// The files of the parts of a charm that lies in a directory; none of one that cannot be read.
    pub(super) fn files(&self, directory: &Path) -> Vec<PathBuf> {
        let Ok(parts) = files::parts(directory, self.limits.component) else { return Vec::new() };
        let modules = parts.modules.iter().map(|module| module.digest);
        let digests = std::iter::once(parts.component).chain(modules);
        digests.map(|digest| self.directories.artefacts().join(self.id(digest).file_name())).collect()
    }

    /// A charm's component, and the modules that it shares with others, each compiled without the rest.
    pub(super) async fn code(
        &self,
        charm: CharmDigest,
        parts: &Parts,
        directory: &Path,
    ) -> Result<(SealedArtifact, Vec<ReadyModule>), CharmError> {
        let component = files::component(directory);
        let mut work = Work { charm, component: &component, limits: self.limits };
        let mut modules = Vec::new();
        for module in &parts.modules {
            let artefact = Some(self.module(&mut work, module).await?);
            modules.push(ReadyModule { digest: module.digest, artefact });
        }
        let artefact = self.part(&mut work, Part::Component, parts.component, &component).await?;
        Ok((artefact, modules))
    }

    async fn module(&self, work: &mut Work<'_>, module: &SharedModule) -> Result<SealedArtifact, CharmError> {
        if let Some(held) = self.held(module.digest, None) {
            return Ok(held);
        }
        let artefact = match self.open(Part::Module, module.digest).await? {
            Some(artefact) => artefact,
            None => {
                let alone = self.incoming("module");
                let (path, whole, module) =
                    (alone.path().to_owned(), work.component.to_owned(), module.clone());
                let digest = module.digest;
                blocking(move || Ok(files::copy_module(&whole, &module, &path)?)).await?;
                self.part(work, Part::Module, digest, alone.path()).await?
            }
        };
        Ok(self.held(module.digest, Some(&artefact)).unwrap_or(artefact))
    }

    /// The memory in which others have a module; where none have, it is the given one from now on.
    fn held(&self, module: CharmDigest, mine: Option<&SealedArtifact>) -> Option<SealedArtifact> {
        let mut held = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|_, artefact| artefact.upgrade().is_some());
        let theirs = held.get(&module).and_then(WeakArtifact::upgrade);
        if let (None, Some(mine)) = (&theirs, mine) {
            held.insert(module, mine.downgrade());
        }
        theirs
    }

    /// A part as it lies here, or compiled now.
    async fn part(
        &self,
        work: &mut Work<'_>,
        part: Part,
        digest: CharmDigest,
        source: &Path,
    ) -> Result<SealedArtifact, CharmError> {
        if let Some(artefact) = self.open(part, digest).await? {
            return Ok(artefact);
        }
        let _permit = self.compiling.acquire().await;
        // Another charm with the same module may have had it compiled meanwhile.
        if let Some(artefact) = self.open(part, digest).await? {
            return Ok(artefact);
        }
        self.compile(work, part, digest, source).await?;
        let gone = || CharmError::Away("what was just compiled is not there".to_owned());
        self.open(part, digest).await?.ok_or_else(gone)
    }

    /// A compiled part, if it is there and is what the helper wrote.
    async fn open(&self, part: Part, digest: CharmDigest) -> Result<Option<SealedArtifact>, CharmError> {
        let (directory, id, key) = (self.directories.artefacts(), self.id(digest), self.key(part).clone());
        blocking(move || match artifact::open(&directory, &id, &key) {
            Ok(sealed) => Ok(Some(sealed)),
            Err(ArtifactError::Missing) => Ok(None),
            Err(ArtifactError::Io(error)) => Err(error.into()),
            Err(error) => {
                let file = id.file_name();
                tracing::warn!(file, %error, "compiled code cannot be used, and is made anew");
                temporary::remove(&directory.join(file))?;
                Ok(None)
            }
        })
        .await
    }

    async fn compile(
        &self,
        work: &mut Work<'_>,
        part: Part,
        digest: CharmDigest,
        source: &Path,
    ) -> Result<(), CharmError> {
        let (charm, limits) = (work.charm.short(), work.limits);
        let output = self.incoming("cwasm");
        let started = tokio::time::Instant::now();
        let compiled = self.compiler.compile(part, source, output.path(), limits).await;
        let took = started.elapsed();
        compiled.map_err(|error| match error {
            CompileError::Component(message) => {
                CharmError::refused(format!("charm {charm} cannot be compiled: {message}"))
            }
            CompileError::Host(message) => CharmError::Away(message),
        })?;
        tracing::info!(%charm, part = %part, ms = took.as_millis(), "compiled");
        let (directory, id, key) = (self.directories.artefacts(), self.id(digest), self.key(part).clone());
        let written = blocking(move || {
            let compiled = fs::read(output.path())?;
            artifact::write(&directory, &id, &key, &compiled)
                .map_err(|error| CharmError::Away(error.to_string()))?;
            Ok(compiled.len() as u64)
        });
        work.limits.output = limits.output.saturating_sub(written.await?);
        work.limits.deadline = limits.deadline.saturating_sub(took);
        Ok(())
    }

    fn id(&self, digest: CharmDigest) -> ArtifactId {
        ArtifactId { component: digest, engine: self.engine }
    }

    fn key(&self, part: Part) -> &ArtifactKey {
        let [components, modules] = &self.keys;
        match part {
            Part::Component => components,
            Part::Module => modules,
        }
    }

    /// A place for what is being made.
    pub(super) fn incoming(&self, kind: &str) -> Temporary {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        Temporary::new(self.directories.incoming().join(format!("{number}.{kind}")))
    }
}

#[cfg(test)]
mod tests;
