//! The hook's own clocks. They start with the hook and advance with its CPU time, measured in fuel, and its
//! sleeps, so that a replay sees the same times (`docs/design/sandbox.md`).

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use periapt_host_api::Timestamp;
use wasmtime::{
    AsContext as _, StoreContextMut,
    component::{ComponentType, Lift, Linker, Lower, Resource},
};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::{HookServices, fuel, state::HookState};

/// The clock of one hook.
#[derive(Debug)]
pub(crate) struct HookClock {
    started: Timestamp,
    fuel: u64,
    /// The time slept, in nanoseconds.
    slept: AtomicU64,
    /// The time since the start at the last reading, in nanoseconds.
    last: AtomicU64,
}

/// The reported resolution, in nanoseconds. Fuel is finer, but hooks should not depend on it.
const RESOLUTION: u64 = 1_000;

impl HookClock {
    pub(crate) fn new(started: Timestamp, fuel: u64) -> Self {
        Self { started, fuel, slept: AtomicU64::new(0), last: AtomicU64::new(0) }
    }

    /// Returns the nanoseconds since the start, given the remaining fuel.
    fn elapsed(&self, fuel_left: u64) -> u64 {
        let computed = fuel::nanoseconds(self.fuel.saturating_sub(fuel_left));
        let now = computed.saturating_add(self.slept.load(Ordering::Relaxed)).max(self.last());
        self.last.store(now, Ordering::Relaxed);
        now
    }

    /// Returns the nanoseconds from the start to the last reading.
    fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Advances the clock to the end of a sleep.
    fn advance_to(&self, due: u64) {
        let last = self.last();
        if let Some(slept) = due.checked_sub(last) {
            self.slept.fetch_add(slept, Ordering::Relaxed);
            self.last.store(due, Ordering::Relaxed);
        }
    }

    /// Returns the time of day at the last reading, since 1970. Files get it as their times.
    pub(crate) fn time_of_day(&self) -> Duration {
        let started = u64::try_from(self.started.as_nanosecond()).unwrap_or(0);
        Duration::from_nanos(started.saturating_add(self.last()))
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> HookClock {
        HookClock::new(Timestamp::UNIX_EPOCH, 10 * fuel::FUEL_PER_SECOND)
    }

    #[test]
    fn computing_moves_the_clock_by_its_fuel() {
        let clock = clock();
        assert_eq!(clock.elapsed(10 * fuel::FUEL_PER_SECOND), 0);
        assert_eq!(clock.elapsed(7 * fuel::FUEL_PER_SECOND), 3_000_000_000);
        assert_eq!(clock.time_of_day(), Duration::from_secs(3));
    }

    #[test]
    fn sleeping_moves_the_clock_to_when_it_was_due() {
        let clock = clock();
        clock.elapsed(9 * fuel::FUEL_PER_SECOND);
        clock.advance_to(5_000_000_000);
        assert_eq!(clock.elapsed(9 * fuel::FUEL_PER_SECOND), 5_000_000_000);
        assert_eq!(clock.elapsed(8 * fuel::FUEL_PER_SECOND), 6_000_000_000);
    }

    #[test]
    fn the_clock_never_goes_back() {
        let clock = clock();
        clock.advance_to(5_000_000_000);
        clock.advance_to(4_000_000_000);
        assert_eq!(clock.elapsed(10 * fuel::FUEL_PER_SECOND), 5_000_000_000);
    }
}
