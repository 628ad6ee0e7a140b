//! The sandbox: one per process, shared by all hooks.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
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

/// The engine and the state that hooks share. Clones are cheap.
#[derive(Clone)]
pub struct Sandbox {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    linker: Linker<HookState>,
    compatibility: CompatibilityHash,
    options: Options,
    /// The shared modules of the loaded charms.
    modules: Mutex<BTreeMap<Digest, Weak<Module>>>,
    /// The semaphore that allows one sync of storage at a time, for all hooks.
    syncs: Arc<Semaphore>,
    _ticker: Ticker,
}

/// An error of building the sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine refused its settings, or the system lacks memory for its pool.
    #[error("the engine cannot be built: {0:#}")]
    Engine(wasmtime::Error),
    /// The epoch thread cannot start.
    #[error("the epoch's thread cannot be started")]
    Ticker(#[from] io::Error),
}

/// An error of compiling: the bytes are no component, or use disabled features.
#[derive(Debug, thiserror::Error)]
#[error("the component cannot be compiled: {0:#}")]
pub struct CompileError(wasmtime::Error);

impl CompileError {
    pub(crate) fn new(error: wasmtime::Error) -> Self {
        Self(error)
    }
}

impl Sandbox {
    /// Builds the engine and links the interfaces that charms may import.
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

    /// Returns the hash of this engine, which is part of the names of compiled components.
    pub fn compatibility_hash(&self) -> CompatibilityHash {
        self.shared.compatibility
    }

    /// Compiles a component to native code, without its shared modules ([`shared_modules`](crate::shared_modules)). A
    /// hostile component can take any amount of time and memory. So agents call this in the compile helper, a process
    /// with limits.
    pub fn compile(&self, component: &[u8]) -> Result<Vec<u8>, CompileError> {
        let rest = divide::rest(component, &divide::shared_modules(component));
        self.shared.engine.precompile_component(&rest).map_err(CompileError)
    }

    /// Compiles a shared module, under the same conditions.
    pub fn compile_module(&self, module: &[u8]) -> Result<Vec<u8>, CompileError> {
        self.shared.engine.precompile_module(module).map_err(CompileError)
    }

    /// Maps a checked component and its shared modules, by their digests. Charms share a module that is already loaded.
    pub fn load(
        &self,
        component: &SealedArtifact,
        modules: &[(Digest, SealedArtifact)],
    ) -> Result<LoadedComponent, ArtifactError> {
        let component = artifact::load_component(self.engine(), component)?;
        let modules = modules.iter().map(|(digest, module)| Ok((*digest, self.module(*digest, module)?)));
        Ok(LoadedComponent { component, modules: modules.collect::<Result<_, ArtifactError>>()? })
    }

    fn module(&self, digest: Digest, artifact: &SealedArtifact) -> Result<Arc<Module>, ArtifactError> {
        let loaded = || self.shared.modules.lock();
        if let Some(module) = loaded().get(&digest).and_then(Weak::upgrade) {
            return Ok(module);
        }
        let module = Arc::new(artifact::load_module(self.engine(), artifact)?);
        let mut loaded = loaded();
        loaded.retain(|_, module| module.strong_count() > 0);
        // After concurrent loads of one module, later charms share the last one.
        loaded.insert(digest, Arc::downgrade(&module));
        Ok(module)
    }

    /// Compiles and loads in one step, in memory, for the laboratory and tests, whose components are trusted.
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

    /// Resolves a component's imports, once for all its hooks. `files` is the charm's unpacked archive, which must not
    /// change while in use.
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

    /// Returns the current content of the pool.
    pub fn pool_statistics(&self) -> PoolStatistics {
        let metrics = self.shared.engine.pooling_allocator_metrics();
        metrics.map_or_else(PoolStatistics::default, |metrics| PoolStatistics {
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

/// The content of a sandbox's pool. A unit without a hook in flight has no part in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// The instances of hooks in flight.
    pub instances: u64,
    /// The memory slots of ended hooks, kept for the next hook of the same component, of any unit.
    pub slots: u32,
    /// The bytes that stay resident in these slots (at most [`Options::resident_bytes`] each).
    pub bytes: u64,
}

/// Shows only the compatibility hash.
impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox").field("compatibility", &self.compatibility_hash()).finish_non_exhaustive()
    }
}

/// A component in native code, with its shared modules.
#[derive(Clone)]
pub struct LoadedComponent {
    component: Component,
    modules: Vec<(Digest, Arc<Module>)>,
}

impl std::fmt::Debug for LoadedComponent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LoadedComponent(..)")
    }
}

/// A component with resolved imports and its charm's files. One per component serves all units; clones are cheap.
#[derive(Clone)]
pub struct Prepared {
    pub(crate) charm: CharmPre<HookState>,
    pub(crate) files: CharmFiles,
    /// Strong references, so that the next charm finds the shared modules while this one is in use.
    _modules: Arc<[Arc<Module>]>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Prepared(..)")
    }
}
