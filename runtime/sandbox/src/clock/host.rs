//! `wasi:clocks`, answered from a hook's own clocks.

use std::{sync::Arc, time::Duration};

use wasmtime::{
    AsContext as _, StoreContextMut,
    component::{ComponentType, Lift, Linker, Lower, Resource},
};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use super::HookClock;
use crate::{HookServices, state::HookState};

/// The reported resolution, in nanoseconds. Fuel is finer, but hooks should not depend on it.
const RESOLUTION: u64 = 1_000;

/// The record of `wasi:clocks/wall-clock`.
#[derive(Debug, Clone, Copy, ComponentType, Lower, Lift)]
#[component(record)]
pub(crate) struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

impl From<Duration> for Datetime {
    fn from(time: Duration) -> Self {
        Self { seconds: time.as_secs(), nanoseconds: time.subsec_nanos() }
    }
}

/// A pollable that is ready once the hook's clock reaches a time.
struct Deadline {
    clock: Arc<HookClock>,
    services: Arc<dyn HookServices>,
    due: u64,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Deadline {
    async fn ready(&mut self) {
        match self.due.checked_sub(self.clock.last()) {
            // The time has come. Yield anyway: a guest may poll in a loop.
            None | Some(0) => tokio::task::yield_now().await,
            // The wall budget ends a sleep that is too long.
            Some(rest) => self.services.sleep(Duration::from_nanos(rest)).await,
        }
        self.clock.advance_to(self.due);
    }
}

/// Links `wasi:clocks`.
pub(crate) fn link(linker: &mut Linker<HookState>) -> wasmtime::Result<()> {
    let mut wall = linker.instance("wasi:clocks/wall-clock@0.2.12")?;
    wall.func_wrap("now", |mut store: StoreContextMut<'_, HookState>, (): ()| {
        look(&mut store)?;
        Ok((Datetime::from(store.data().clock.time_of_day()),))
    })?;
    wall.func_wrap("resolution", |_: StoreContextMut<'_, HookState>, (): ()| {
        Ok((Datetime::from(Duration::from_nanos(RESOLUTION)),))
    })?;

    let mut monotonic = linker.instance("wasi:clocks/monotonic-clock@0.2.12")?;
    monotonic
        .func_wrap("now", |mut store: StoreContextMut<'_, HookState>, (): ()| Ok((look(&mut store)?,)))?;
    monotonic.func_wrap("resolution", |_: StoreContextMut<'_, HookState>, (): ()| Ok((RESOLUTION,)))?;
    monotonic.func_wrap(
        "subscribe-instant",
        |mut store: StoreContextMut<'_, HookState>, (due,): (u64,)| {
            look(&mut store)?;
            Ok((wait_until(store.data_mut(), due)?,))
        },
    )?;
    monotonic.func_wrap(
        "subscribe-duration",
        |mut store: StoreContextMut<'_, HookState>, (duration,): (u64,)| {
            let due = look(&mut store)?.saturating_add(duration);
            Ok((wait_until(store.data_mut(), due)?,))
        },
    )
}

/// Reads the clock as a metered host call.
fn look(store: &mut StoreContextMut<'_, HookState>) -> wasmtime::Result<u64> {
    let meter = Arc::clone(&store.data().meter);
    meter.call(0)?;
    meter.settle(&mut *store)?;
    let fuel = store.as_context().get_fuel()?;
    Ok(store.data().clock.elapsed(fuel))
}

fn wait_until(state: &mut HookState, due: u64) -> wasmtime::Result<Resource<DynPollable>> {
    let deadline = Deadline { clock: Arc::clone(&state.clock), services: Arc::clone(&state.services), due };
    let deadline = state.table.push(deadline)?;
    subscribe(&mut state.table, deadline)
}
