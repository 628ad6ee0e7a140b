//! The engine of a process that runs a workload.

use std::{fmt, sync::Arc, time::Duration};

use periapt_host_api::workloads::WorkloadInterface;
use tokio::time::sleep;
use wasmtime::{
    Engine, Store, UpdateDeadline,
    component::{Component, InstancePre, Linker, ResourceTable},
};
use wasmtime_wasi::{WasiCtx, p2};
use wasmtime_wasi_http::{WasiHttpCtx, p2 as http};

use super::{
    memory::{SharedMemory, WorkloadLimiter},
    outbound::{Outbound, OutboundHooks},
    quota::CpuQuota,
    state::WorkloadState,
};
use crate::{CompileError, Options, SandboxError, engine, limits, ticker::Ticker};

/// The bytes of a memory slot that stay resident for the next request: what small servers write to.
const RESIDENT_BYTES: u64 = 1 << 20;

/// The most bytes of one map of header fields. A guest may have as many maps as handles: some megabytes together.
const FIELD_BYTES: usize = 16 << 10;

/// The most resource handles of an instance. Each may hold some memory of the host: a map of fields, or the chunks of a
/// body.
const MAX_HANDLES: usize = 500;

/// The bounds of all instances of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkloadPool {
    /// The most instances at a time.
    pub instances: u32,
    /// The linear memory of all instances together, in bytes.
    pub memory: u64,
    /// The linear memory of one instance, in bytes.
    pub instance_memory: u64,
    /// The CPU time of the whole process while guests run, in thousandths of one processor; none for all processors.
    pub cpu: Option<u32>,
    /// The interval at which a computing instance yields to others.
    pub tick: Duration,
}

impl Default for WorkloadPool {
    fn default() -> Self {
        Self {
            instances: 32,
            memory: 512 << 20,
            instance_memory: 128 << 20,
            cpu: None,
            // As for hooks.
            tick: Duration::from_millis(5),
        }
    }
}

/// The engine of a workload: the settings of hooks, with a pool and a linker of its own. Clones are cheap.
#[derive(Clone)]
pub struct WorkloadEngine {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    linker: Linker<WorkloadState>,
    memory: Arc<SharedMemory>,
    quota: Option<Arc<CpuQuota>>,
    pool: WorkloadPool,
    _ticker: Ticker,
}

/// A component in native code.
#[derive(Clone)]
pub struct CompiledWorkload(Component);

impl fmt::Debug for CompiledWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompiledWorkload(..)")
    }
}

/// A component that is not the workload that it is declared to be.
#[derive(Debug, thiserror::Error)]
pub enum UnfitWorkload {
    /// The component has other exports.
    #[error("it does not export {wanted}; its exports: {exports}")]
    NoExport {
        /// The name of the interface.
        wanted: &'static str,
        /// The names of the exports.
        exports: String,
    },
    /// The component imports what there is not, or exports an interface of another form.
    #[error("it does not fit the sandbox: {0:#}")]
    Unfit(wasmtime::Error),
}

/// The most characters of exports that an error names.
const TOLD: usize = 1_000;

impl WorkloadEngine {
    /// Builds the engine and links WASI and `wasi:http`.
    ///
    /// # Errors
    /// The system lacks memory for the pool, or refuses a thread.
    pub fn new(pool: WorkloadPool) -> Result<Self, SandboxError> {
        let options = Options {
            hooks_in_flight: pool.instances.max(1),
            largest_memory: pool.instance_memory,
            resident_bytes: RESIDENT_BYTES,
            tick: pool.tick,
        };
        let engine = engine::build(&options).map_err(SandboxError::Engine)?;
        let mut linker = Linker::new(&engine);
        p2::add_to_linker_async(&mut linker).map_err(SandboxError::Engine)?;
        http::add_only_http_to_linker_async(&mut linker).map_err(SandboxError::Engine)?;
        let ticker = Ticker::start(engine.weak(), pool.tick)?;
        let memory = SharedMemory::new(pool.memory);
        let quota = pool.cpu.map(|cpu| Arc::new(CpuQuota::new(cpu)));
        Ok(Self { shared: Arc::new(Shared { engine, linker, memory, quota, pool, _ticker: ticker }) })
    }

    /// Waits until the process is within its share of the processors. Guests that compute wait at the ticks of the engine;
    /// shorter ones do so before they begin.
    pub(super) async fn within_quota(&self) {
        let Some(quota) = &self.shared.quota else { return };
        while let Some(wait) = quota.wait() {
            sleep(wait).await;
        }
    }

    /// Compiles a component to native code. A hostile one can take any amount of time and memory: callers have limits
    /// for both.
    ///
    /// # Errors
    /// The bytes are no component, or use features that are switched off.
    pub fn compile(&self, component: &[u8]) -> Result<CompiledWorkload, CompileError> {
        Component::from_binary(&self.shared.engine, component)
            .map(CompiledWorkload)
            .map_err(CompileError::new)
    }

    /// Resolves the imports of a component that must export an interface.
    pub(super) fn link(
        &self,
        workload: &CompiledWorkload,
        interface: WorkloadInterface,
    ) -> Result<InstancePre<WorkloadState>, UnfitWorkload> {
        let wanted = interface.as_str();
        let ty = workload.0.component_type();
        let mut names = ty.exports(&self.shared.engine).map(|(name, _)| name);
        if !names.any(|name| interface.is_export(name)) {
            let all: Vec<&str> = ty.exports(&self.shared.engine).map(|(name, _)| name).collect();
            let exports = match all.is_empty() {
                true => "none".to_owned(),
                false => all.join(", ").chars().take(TOLD).collect(),
            };
            return Err(UnfitWorkload::NoExport { wanted, exports });
        }
        self.shared.linker.instantiate_pre(&workload.0).map_err(UnfitWorkload::Unfit)
    }

    /// Creates the store of an instance, with all its limits but that of time.
    pub(super) fn store(
        &self,
        wasi: WasiCtx,
        outbound: &Arc<dyn Outbound>,
        fuel: u64,
    ) -> wasmtime::Result<Store<WorkloadState>> {
        let Shared { engine, memory, pool, .. } = &*self.shared;
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits::MAX_RESOURCES);
        let mut http = WasiHttpCtx::new();
        http.set_field_size_limit(FIELD_BYTES);
        let state = WorkloadState {
            table,
            wasi,
            http,
            hooks: OutboundHooks(Arc::clone(outbound)),
            limiter: WorkloadLimiter::new(pool.instance_memory, memory),
        };
        let mut store = Store::new(engine, state);
        limits::bound_store(&mut store);
        store.set_max_component_handles(MAX_HANDLES);
        store.limiter(|state| &mut state.limiter);
        store.set_fuel(fuel)?;
        match self.shared.quota.clone() {
            None => store.epoch_deadline_async_yield_and_update(1),
            Some(quota) => store.epoch_deadline_callback(move |_| {
                Ok(match quota.wait() {
                    None => UpdateDeadline::Yield(1),
                    Some(wait) => UpdateDeadline::YieldCustom(1, Box::pin(sleep(wait))),
                })
            }),
        }
        store.set_epoch_deadline(1);
        Ok(store)
    }

    /// Returns the bounds.
    #[must_use]
    pub fn pool(&self) -> &WorkloadPool {
        &self.shared.pool
    }
}

impl fmt::Debug for WorkloadEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkloadEngine").field("pool", &self.shared.pool).finish_non_exhaustive()
    }
}
