//! Native code on this host: compiled once, whoever asks first, and checked whenever it is read.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use periapt_host_api::CharmDigest;
use periapt_sandbox::{
    ArtifactError, ArtifactId, ArtifactKey, CompatibilityHash, SealedArtifact, WeakArtifact, artifact,
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
    protocol::ReadyModule,
};

/// A charm's component and the modules that it shares, in native code.
pub(super) struct Native {
    directories: Arc<Directories>,
    compiler: Arc<dyn Compile>,
    engine: CompatibilityHash,
    /// Of components, and of modules: what was compiled as one is never taken for the other.
    keys: [ArtifactKey; 2],
    compiling: Semaphore,
    /// Modules that a charm has in memory: the next one takes the same memory.
    modules: Mutex<BTreeMap<CharmDigest, WeakArtifact>>,
    sequence: AtomicU64,
}

impl Native {
    pub(super) fn new(
        directories: Arc<Directories>,
        compiler: Arc<dyn Compile>,
        engine: CompatibilityHash,
    ) -> Self {
        let key = ArtifactKey::new(directories.key());
        Self {
            directories,
            compiler,
            engine,
            keys: [key.clone(), key.derived("module")],
            // One compilation already uses every core.
            compiling: Semaphore::new(1),
            modules: Mutex::default(),
            sequence: AtomicU64::new(0),
        }
    }

    /// The names of the files of a charm's parts.
    pub(super) fn file_names(&self, parts: &Parts) -> Vec<String> {
        let modules = parts.modules.iter().map(|module| module.digest);
        std::iter::once(parts.component).chain(modules).map(|digest| self.id(digest).file_name()).collect()
    }

    /// A charm's component.
    pub(super) async fn component(
        &self,
        charm: CharmDigest,
        parts: &Parts,
        directory: &Path,
    ) -> Result<SealedArtifact, CharmError> {
        self.part(charm, Part::Component, parts.component, &files::component(directory)).await
    }

    /// The modules that a charm's component shares with others, each compiled without the rest.
    pub(super) async fn modules(
        &self,
        charm: CharmDigest,
        parts: &Parts,
        directory: &Path,
    ) -> Result<Vec<ReadyModule>, CharmError> {
        let mut ready = Vec::new();
        for module in &parts.modules {
            let held = self.held().get(&module.digest).and_then(WeakArtifact::upgrade);
            let kept = match held {
                None => self.open(Part::Module, module.digest).await?,
                held => held,
            };
            let artefact = match kept {
                Some(artefact) => artefact,
                None => {
                    let alone = self.incoming("module");
                    let (path, whole) = (alone.path().to_owned(), files::component(directory));
                    let range = module.range.clone();
                    blocking(move || Ok(files::copy_part(&whole, range, &path)?)).await?;
                    self.part(charm, Part::Module, module.digest, alone.path()).await?
                }
            };
            let mut held = self.held();
            held.retain(|_, module| module.upgrade().is_some());
            held.insert(module.digest, artefact.downgrade());
            ready.push(ReadyModule { digest: module.digest, artefact: Some(artefact) });
        }
        Ok(ready)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<CharmDigest, WeakArtifact>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A part as it lies here, or compiled now.
    async fn part(
        &self,
        charm: CharmDigest,
        part: Part,
        digest: CharmDigest,
        source: &Path,
    ) -> Result<SealedArtifact, CharmError> {
        if let Some(artefact) = self.open(part, digest).await? {
            return Ok(artefact);
        }
        // Never closed, and if it were: without the permit the work is still right.
        let _permit = self.compiling.acquire().await;
        // Another charm with the same module may have had it compiled meanwhile.
        if let Some(artefact) = self.open(part, digest).await? {
            return Ok(artefact);
        }
        self.compile(charm, part, digest, source).await?;
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
        charm: CharmDigest,
        part: Part,
        digest: CharmDigest,
        source: &Path,
    ) -> Result<(), CharmError> {
        let output = self.incoming("cwasm");
        let started = tokio::time::Instant::now();
        self.compiler.compile(part, source, output.path()).await.map_err(|error| match error {
            CompileError::Component(message) => {
                CharmError::refused(format!("charm {} cannot be compiled: {message}", charm.short()))
            }
            CompileError::Host(message) => CharmError::Away(message),
        })?;
        tracing::info!(charm = %charm.short(), part = %part, ms = started.elapsed().as_millis(), "compiled");
        let (directory, id, key) = (self.directories.artefacts(), self.id(digest), self.key(part).clone());
        blocking(move || {
            let compiled = fs::read(output.path())?;
            artifact::write(&directory, &id, &key, &compiled)
                .map_err(|error| CharmError::Away(error.to_string()))?;
            Ok(())
        })
        .await
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
mod tests {
    use futures_util::future::BoxFuture;

    use super::*;

    /// "Compiles" a part to its name, and counts.
    #[derive(Default)]
    struct Compiler(Mutex<Vec<Part>>);

    impl Compile for Compiler {
        fn compile<'a>(
            &'a self,
            part: Part,
            _: &'a Path,
            output: &'a Path,
        ) -> BoxFuture<'a, Result<(), CompileError>> {
            Box::pin(async move {
                self.0.lock().unwrap().push(part);
                Ok(fs::write(output, part.to_string())?)
            })
        }
    }

    /// A section of a component or a module.
    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        let mut length = content.len();
        let mut bytes = vec![id];
        while length >= 0x80 {
            bytes.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        bytes.push(length as u8);
        [bytes, content.to_vec()].concat()
    }

    /// A large component with a module of much code, which nobody runs.
    fn component(filler: u8) -> Vec<u8> {
        let code = section(10, &vec![0; 256 << 10]);
        let module = [b"\0asm\x01\0\0\0".as_slice(), &code].concat();
        let rest = section(0, &[&[0], vec![filler; 5 << 20].as_slice()].concat());
        [b"\0asm\x0d\0\x01\0".as_slice(), &section(1, &module), &rest].concat()
    }

    struct Bench {
        data: tempfile::TempDir,
        compiler: Arc<Compiler>,
        native: Native,
    }

    impl Bench {
        fn new() -> Self {
            let data = tempfile::tempdir().unwrap();
            let compiler = Arc::new(Compiler::default());
            let directories = Arc::new(Directories::open(data.path()).unwrap());
            let options = periapt_sandbox::Options { hooks_in_flight: 1, ..Default::default() };
            let engine = periapt_sandbox::Sandbox::new(options).unwrap().compatibility_hash();
            let native = Native::new(directories, Arc::clone(&compiler) as _, engine);
            Self { data, compiler, native }
        }

        /// A charm's component and its modules.
        async fn charm(&self, filler: u8) -> (Parts, SealedArtifact, Vec<ReadyModule>) {
            let directory = self.data.path().join(format!("charm-{filler}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(files::component(&directory), component(filler)).unwrap();
            let (charm, parts) = (CharmDigest::of(&[filler]), files::parts(&directory).unwrap());
            let modules = self.native.modules(charm, &parts, &directory).await.unwrap();
            let component = self.native.component(charm, &parts, &directory).await.unwrap();
            (parts, component, modules)
        }

        fn compiled(&self) -> Vec<Part> {
            std::mem::take(&mut *self.compiler.0.lock().unwrap())
        }
    }

    #[tokio::test]
    async fn what_two_charms_share_is_compiled_once_and_in_memory_once() {
        let bench = Bench::new();
        let (_, one, modules) = bench.charm(1).await;
        assert_eq!(bench.compiled(), [Part::Module, Part::Component]);
        let (_, other, shared) = bench.charm(2).await;
        assert_eq!(bench.compiled(), [Part::Component]);
        assert_eq!((modules.len(), &modules), (1, &shared));
        assert_ne!(one, other);
        // Nobody holds it in memory any more: then it is read from the disk.
        drop((modules, shared));
        bench.charm(1).await;
        assert!(bench.compiled().is_empty());
        assert_eq!(fs::read_dir(bench.data.path().join("incoming")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_module_that_somebody_changed_is_made_anew() {
        let bench = Bench::new();
        let (parts, ..) = bench.charm(1).await;
        bench.compiled();
        let names = bench.native.file_names(&parts);
        assert_eq!(names.len(), 2);
        let artefacts = bench.data.path().join("artefacts");
        // A component's code is none of a module's, whatever its file is called.
        fs::copy(artefacts.join(&names[0]), artefacts.join(&names[1])).unwrap();
        bench.charm(1).await;
        assert_eq!(bench.compiled(), [Part::Module]);
    }
}
