//! The sandbox: one per process, shared by all hooks.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use periapt_host_api::Digest;

use tokio::sync::Semaphore;
use wasmtime::{
    Engine, Module,
    component::{Component, Linker},
};

use crate::{
    ArtifactError, CompatibilityHash, Options, PrepareError, SealedArtifact, artifact,
    contract::{self, CharmPre},
    divide::{self, SharedModule},
    engine,
    files::CharmFiles,
    state::HookState,
    ticker::Ticker,
    wasi,
};

/// The engine with all that hooks share. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    linker: Linker<HookState>,
    compatibility: CompatibilityHash,
    options: Options,
    /// Modules that loaded charms share.
    modules: Mutex<BTreeMap<Digest, Weak<Module>>>,
    /// How many files of storage are brought to the disk at a time, whatever the number of hooks that ask: one.
    syncs: Arc<Semaphore>,
    _ticker: Ticker,
}

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine refused its settings, or the system has no room for its pool.
    #[error("the engine cannot be built: {0:#}")]
    Engine(wasmtime::Error),
    /// The thread that raises the epoch could not be started.
    #[error("the epoch's thread cannot be started")]
    Ticker(#[from] io::Error),
}

/// A component that does not compile: it is no component, or uses what the sandbox switches off.
#[derive(Debug, thiserror::Error)]
#[error("the component cannot be compiled: {0:#}")]
pub struct CompileError(wasmtime::Error);

impl Sandbox {
    /// Builds the engine and links what charms may import.
    pub fn new(options: Options) -> Result<Self, SandboxError> {
        let engine = engine::build(&options).map_err(SandboxError::Engine)?;
        let mut linker = Linker::new(&engine);
        contract::link(&mut linker).map_err(SandboxError::Engine)?;
        wasi::link(&mut linker).map_err(SandboxError::Engine)?;
        let ticker = Ticker::start(engine.weak(), options.tick)?;
        let compatibility = CompatibilityHash::of(&engine);
        let syncs = Arc::new(Semaphore::new(1));
        let modules = Mutex::default();
        let shared = Shared { engine, linker, compatibility, options, modules, syncs, _ticker: ticker };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What compiled components of this sandbox depend on; a part of their names.
    pub fn compatibility_hash(&self) -> CompatibilityHash {
        self.shared.compatibility
    }

    /// Compiles a component to native code, without the modules that are compiled by themselves
    /// ([`shared_modules`](crate::shared_modules)). It takes as long as the component likes, and as much memory:
    /// strangers' components are compiled by the compile helper, a process with limits of its own.
    pub fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let rest = divide::rest(component, &divide::shared_modules(component));
        self.shared.engine.precompile_component(&rest).map_err(CompileError)
    }

    /// Compiles such a module, under the same conditions.
    pub fn compile_module(&self, module: &[u8]) -> Result<Vec<u8>, CompileError> {
        self.shared.engine.precompile_module(module).map_err(CompileError)
    }

    /// Maps a compiled component that was checked, and the modules that it shares, by their digests. A module that another
    /// charm has loaded is that one's.
    pub fn load(
        &self,
        component: &SealedArtifact,
        modules: &[(Digest, SealedArtifact)],
    ) -> Result<LoadedComponent, ArtifactError> {
        let component = artifact::load_component(self, component)?;
        let modules = modules.iter().map(|(digest, module)| Ok((*digest, self.module(*digest, module)?)));
        Ok(LoadedComponent { component, modules: modules.collect::<Result<_, ArtifactError>>()? })
    }

    fn module(&self, digest: Digest, artifact: &SealedArtifact) -> Result<Arc<Module>, ArtifactError> {
        let loaded = || self.shared.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded().get(&digest).and_then(Weak::upgrade) {
            return Ok(module);
        }
        let module = Arc::new(artifact::load_module(self, artifact)?);
        let mut loaded = loaded();
        loaded.retain(|_, module| module.strong_count() > 0);
        // Two that load it at once both have one, and the next takes the later one.
        loaded.insert(digest, Arc::downgrade(&module));
        Ok(module)
    }

    /// Compiles and loads in one step, in memory: for a laboratory and for tests, where the component is
    /// one's own.
    pub fn compile_in_process(&self, component: &[u8]) -> Result<LoadedComponent, CompileError> {
        let engine = &self.shared.engine;
        let shared = divide::shared_modules(component);
        let rest = Component::from_binary(engine, &divide::rest(component, &shared)).map_err(CompileError)?;
        let modules = shared.iter().map(|module| {
            let alone = Module::from_binary(engine, module.bytes(component)).map_err(CompileError)?;
            Ok((module.digest, Arc::new(alone)))
        });
        Ok(LoadedComponent { component: rest, modules: modules.collect::<Result<_, CompileError>>()? })
    }

    /// Resolves a component's imports, once for all its hooks. `files`: the charm's unpacked archive, which
    /// must not change while it is in use.
    pub fn prepare(&self, loaded: &LoadedComponent, files: Option<&Path>) -> Result<Prepared, PrepareError> {
        let mut linker = self.shared.linker.clone();
        for (digest, module) in &loaded.modules {
            let name = SharedModule::import_name(digest);
            linker.root().module(&name, module).map_err(PrepareError::Unfit)?;
        }
        let instance = linker.instantiate_pre(&loaded.component).map_err(PrepareError::Unfit)?;
        let charm = CharmPre::new(instance).map_err(PrepareError::Unfit)?;
        let files = match files {
            Some(directory) => CharmFiles::scan(directory).map_err(PrepareError::Files)?,
            None => CharmFiles::none(),
        };
        let modules = loaded.modules.iter().map(|(_, module)| Arc::clone(module)).collect();
        Ok(Prepared { charm, files, _modules: modules })
    }

    /// What its pool holds at this time.
    pub fn held(&self) -> Held {
        let metrics = self.shared.engine.pooling_allocator_metrics();
        metrics.map_or_else(Held::default, |metrics| Held {
            instances: metrics.core_instances(),
            slots: metrics.unused_warm_memories(),
            bytes: metrics.unused_memory_bytes_resident() as u64,
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    pub(crate) fn syncs(&self) -> Arc<Semaphore> {
        Arc::clone(&self.shared.syncs)
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }
}

/// What a sandbox's pool holds. A unit without a hook in flight has no part in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// Instances, all of them of hooks in flight.
    pub instances: u64,
    /// Memories of hooks that have ended, kept for the next hook of the same component, whichever unit's that is.
    pub slots: u32,
    /// Bytes that stay resident in these ([`Options::resident_bytes`] each at most).
    pub bytes: u64,
}

/// Says nothing of what is inside.
impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("compatibility", &self.compatibility_hash()).finish_non_exhaustive()
    }
}

/// A component in native code, with the modules that it shares.
#[derive(Clone)]
pub struct LoadedComponent {
    component: Component,
    modules: Vec<(Digest, Arc<Module>)>,
}

impl std::fmt::Debug for LoadedComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Loaded(..)")
    }
}

/// A component that is ready to run, with its charm's files. One per component is kept, however many units
/// it has; cheap to clone.
#[derive(Clone)]
pub struct Prepared {
    pub(crate) charm: CharmPre<HookState>,
    pub(crate) files: CharmFiles,
    /// The next charm that shares them finds them for as long as this one is ready.
    _modules: Arc<[Arc<Module>]>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prepared(..)")
    }
}
