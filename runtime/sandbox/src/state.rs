//! The state of a hook's store.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use periapt_hook::{CallTime, HookContext};
use tokio::sync::Semaphore;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

use crate::{
    HookServices,
    clock::HookClock,
    connections::Connections,
    files::{Files, FilesView},
    limits::Limiter,
    meter::Meter,
};

/// The data of one hook's store.
pub(crate) struct HookState {
    pub(crate) access: Arc<ContextAccess>,
    pub(crate) services: Arc<dyn HookServices>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) limiter: Limiter,
    pub(crate) clock: Arc<HookClock>,
    pub(crate) files: Files,
    /// The open streams to the unit's workloads.
    pub(crate) connections: Connections,
    /// The semaphore that allows one sync of storage at a time.
    pub(crate) syncs: Arc<Semaphore>,
    pub(crate) table: ResourceTable,
    pub(crate) wasi: WasiCtx,
}

impl HookState {
    /// Returns the files for the linker of `wasi:filesystem`.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        FilesView {
            files: &mut self.files,
            table: &mut self.table,
            meter: &self.meter,
            limiter: &mut self.limiter,
            syncs: &self.syncs,
        }
    }
}

impl WasiView for HookState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

/// Access to the hook's context, for host functions and output streams.
pub(crate) struct ContextAccess {
    context: Mutex<HookContext>,
    services: Arc<dyn HookServices>,
}

impl ContextAccess {
    pub(crate) fn new(context: HookContext, services: Arc<dyn HookServices>) -> Arc<Self> {
        Arc::new(Self { context: Mutex::new(context), services })
    }

    /// Makes a call, and sends the resulting early effects.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut HookContext, CallTime) -> R) -> R {
        let mut context = self.lock();
        let answer = call(&mut context, self.services.now());
        let early = context.drain_early();
        drop(context);
        if !early.is_empty() {
            self.services.early(early);
        }
        answer
    }

    /// Fails if the hook is a replay, and has made another call than the recorded one.
    pub(crate) fn check(&self) -> wasmtime::Result<()> {
        match self.lock().differs() {
            true => Err(wasmtime::Error::msg("the replay differs from the record")),
            false => Ok(()),
        }
    }

    /// Returns the context at the end of the hook.
    pub(crate) fn into_context(self) -> HookContext {
        self.context.into_inner()
    }

    fn lock(&self) -> MutexGuard<'_, HookContext> {
        // Each call changes the context last, so it is consistent after a panic.
        self.context.lock()
    }
}
