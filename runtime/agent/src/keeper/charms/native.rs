//! The native code of charms on this host: compiled once, and checked at each reading.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use periapt_host_api::Digest;
use periapt_sandbox::{
    ArtifactError, ArtifactId, ArtifactKey, CompatibilityHash, SealedArtifact, SharedModule, WeakArtifact,
    artifact,
};
use tokio::sync::Semaphore;

use super::{
    CharmError, blocking,
    files::{self, Parts},
    parts::CompiledParts,
};
use crate::{
    helper::Part,
    keeper::{
        compile::{Compile, CompileError},
        directories::Directories,
        temporary::{self, Temporary},
    },
    metrics::metrics,
    options::CompileLimits,
    protocol::{ReadyCharm, ReadyModule},
};

/// The components of charms and their shared modules, in native code.
pub(super) struct Native {
    directories: Arc<Directories>,
    compiler: Arc<dyn Compile>,
    engine: CompatibilityHash,
    /// The limits for all parts of a charm together.
    limits: CompileLimits,
    /// The keys of components and of modules: code of one kind never counts as the other.
    keys: [ArtifactKey; 2],
    /// The permit to read a component: one at a time, as each is read whole.
    reading: Semaphore,
    /// The permit to compile a part: one at a time, as each uses every core.
    compiling: Semaphore,
    /// The shared modules in memory, which the next charm reuses.
    modules: Mutex<BTreeMap<Digest, WeakArtifact>>,
    sequence: AtomicU64,
}

/// The preparation of a charm's code.
struct Work<'a> {
    charm: Digest,
    component: &'a Path,
    /// The remaining limits for the parts that are not compiled yet.
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

    /// Loads a charm's existing code, without its component. Returns none if a part is missing.
    pub(super) async fn ready(&self, charm: Digest) -> Result<Option<ReadyCharm>, CharmError> {
        let path = self.directories.parts(&charm, self.engine);
        let Some(parts) = blocking(move || Ok(CompiledParts::read(&path)?)).await? else { return Ok(None) };
        let mut modules = Vec::new();
        for digest in parts.modules {
            let Some(artefact) = self.opened_module(digest).await? else { return Ok(None) };
            modules.push(ReadyModule { digest, artefact: Some(artefact) });
        }
        let Some(artefact) = self.open(Part::Component, parts.component).await? else { return Ok(None) };
        Ok(Some(self.charm(charm, parts.component, artefact, modules)))
    }

    /// Returns true if a charm's files and its code exist. The code is checked when it is read.
    pub(super) async fn lies_here(&self, charm: Digest) -> Result<bool, CharmError> {
        let (directories, engine) = (Arc::clone(&self.directories), self.engine);
        blocking(move || {
            let files = code_files(&directories, engine, charm);
            Ok(!files.is_empty()
                && directories.charm(&charm).try_exists()?
                && files.iter().all(|file| file.exists()))
        })
        .await
    }

    /// Compiles the charm whose component is in a directory.
    pub(super) async fn compiled(&self, charm: Digest, directory: &Path) -> Result<ReadyCharm, CharmError> {
        let parts = self.parts(directory).await?;
        let (artefact, modules) = self.code(charm, &parts, directory).await?;
        let (temporary, path) = (self.incoming("parts"), self.directories.parts(&charm, self.engine));
        let compiled = CompiledParts::from(&parts);
        blocking(move || Ok(compiled.write(temporary.path(), &path)?)).await?;
        Ok(self.charm(charm, parts.component, artefact, modules))
    }

    fn charm(
        &self,
        digest: Digest,
        component: Digest,
        artefact: SealedArtifact,
        modules: Vec<ReadyModule>,
    ) -> ReadyCharm {
        let directory = self.directories.charm(&digest);
        ReadyCharm { digest, component, directory, artefact: Some(artefact), modules }
    }

    /// Reads the parts of a charm's component.
    async fn parts(&self, directory: &Path) -> Result<Parts, CharmError> {
        // The semaphore is never closed. Even without the permit, the work would be correct.
        let _permit = self.reading.acquire().await;
        let (directory, most) = (directory.to_owned(), self.limits.component);
        blocking(move || files::parts(&directory, most)).await
    }

    /// Returns the files of a charm's code; none if it is not compiled.
    pub(super) fn files(&self, charm: Digest) -> Vec<PathBuf> {
        code_files(&self.directories, self.engine, charm)
    }

    /// Prepares the code of a charm's component and of its shared modules, each compiled separately.
    async fn code(
        &self,
        charm: Digest,
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
        let digest = module.digest;
        if let Some(artefact) = self.opened_module(digest).await? {
            return Ok(artefact);
        }
        let alone = self.incoming("module");
        let (path, whole, module) = (alone.path().to_owned(), work.component.to_owned(), module.clone());
        blocking(move || Ok(files::copy_module(&whole, &module, &path)?)).await?;
        let artefact = self.part(work, Part::Module, digest, alone.path()).await?;
        Ok(self.held(digest, Some(&artefact)).unwrap_or(artefact))
    }

    /// Returns a shared module from memory, or else from the disk.
    async fn opened_module(&self, digest: Digest) -> Result<Option<SealedArtifact>, CharmError> {
        if let Some(held) = self.held(digest, None) {
            return Ok(Some(held));
        }
        let opened = self.open(Part::Module, digest).await?;
        Ok(opened.map(|artefact| self.held(digest, Some(&artefact)).unwrap_or(artefact)))
    }

    /// Returns the memory that other charms use for a module. If there is none, it records the given one.
    fn held(&self, module: Digest, mine: Option<&SealedArtifact>) -> Option<SealedArtifact> {
        let mut held = self.modules.lock();
        held.retain(|_, artefact| artefact.upgrade().is_some());
        let theirs = held.get(&module).and_then(WeakArtifact::upgrade);
        if let (None, Some(mine)) = (&theirs, mine) {
            held.insert(module, mine.downgrade());
        }
        theirs
    }

    /// Returns a part from the disk, compiled first if needed.
    async fn part(
        &self,
        work: &mut Work<'_>,
        part: Part,
        digest: Digest,
        source: &Path,
    ) -> Result<SealedArtifact, CharmError> {
        if let Some(artefact) = self.open(part, digest).await? {
            return Ok(artefact);
        }
        let _permit = self.compiling.acquire().await;
        // Another charm with the same module may have compiled it meanwhile.
        if let Some(artefact) = self.open(part, digest).await? {
            return Ok(artefact);
        }
        self.compile(work, part, digest, source).await?;
        let gone = || CharmError::Away("what was just compiled is not there".to_owned());
        self.open(part, digest).await?.ok_or_else(gone)
    }

    /// Loads a compiled part, if it exists and its MAC is valid.
    async fn open(&self, part: Part, digest: Digest) -> Result<Option<SealedArtifact>, CharmError> {
        let (directory, id, key) = (self.directories.artefacts(), self.id(digest), self.key(part).clone());
        blocking(move || match artifact::open(&directory, &id, &key) {
            Ok(sealed) => Ok(Some(sealed)),
            Err(ArtifactError::Missing) => Ok(None),
            Err(ArtifactError::Io(error)) => Err(error.into()),
            Err(error) => {
                let file = id.file_name();
                tracing::warn!(file, %error, "compiled code cannot be used, and is compiled again");
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
        digest: Digest,
        source: &Path,
    ) -> Result<(), CharmError> {
        let (charm, limits) = (work.charm.short(), work.limits);
        let output = self.incoming("cwasm");
        let started = tokio::time::Instant::now();
        let compiled = self.compiler.compile(part, source, output.path(), limits).await;
        let took = started.elapsed();
        metrics().compile_seconds.took(&[if compiled.is_ok() { "ok" } else { "failed" }], took);
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

    fn id(&self, digest: Digest) -> ArtifactId {
        ArtifactId { component: digest, engine: self.engine }
    }

    fn key(&self, part: Part) -> &ArtifactKey {
        let [components, modules] = &self.keys;
        match part {
            Part::Component => components,
            Part::Module => modules,
        }
    }

    /// Returns a path for unfinished work.
    pub(super) fn incoming(&self, kind: &str) -> Temporary {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        Temporary::new(self.directories.incoming().join(format!("{number}.{kind}")))
    }
}

fn code_files(directories: &Directories, engine: CompatibilityHash, charm: Digest) -> Vec<PathBuf> {
    let path = directories.parts(&charm, engine);
    let Ok(Some(parts)) = CompiledParts::read(&path) else { return Vec::new() };
    let digests = std::iter::once(parts.component).chain(parts.modules);
    let code =
        digests.map(|component| directories.artefacts().join(ArtifactId { component, engine }.file_name()));
    std::iter::once(path).chain(code).collect()
}

#[cfg(test)]
mod tests;
