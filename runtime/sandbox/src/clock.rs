//! The hook's own clocks: they begin at the hook's start and advance by what the hook computes and sleeps, so
//! that a replay sees the same times (`docs/design/sandbox.md`).

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

/// One hook's time.
#[derive(Debug)]
pub(crate) struct HookClock {
    started: Timestamp,
    fuel: u64,
    /// What the hook has slept, in nanoseconds.
    slept: AtomicU64,
    /// The time since the start when it was last looked at, in nanoseconds.
    last: AtomicU64,
}

/// What the clocks say of their resolution: fuel is finer, but nobody should rely on it.
const RESOLUTION: u64 = 1_000;

impl HookClock {
    pub(crate) fn new(started: Timestamp, fuel: u64) -> Self {
        Self { started, fuel, slept: AtomicU64::new(0), last: AtomicU64::new(0) }
    }

    /// Nanoseconds since the start, with so much fuel left.
    fn elapsed(&self, fuel_left: u64) -> u64 {
        let computed = fuel::nanoseconds(self.fuel.saturating_sub(fuel_left));
        let now = computed.saturating_add(self.slept.load(Ordering::Relaxed)).max(self.last());
        self.last.store(now, Ordering::Relaxed);
        now
    }

    /// Nanoseconds from the start to when the clock was last looked at.
    fn last(&self) -> u64 {
        self.last.load(Ordering::Relaxed)
    }

    /// Sleeping has brought the clock to this time.
    fn advance_to(&self, due: u64) {
        let last = self.last();
        if let Some(slept) = due.checked_sub(last) {
            self.slept.fetch_add(slept, Ordering::Relaxed);
            self.last.store(due, Ordering::Relaxed);
        }
    }

    /// Time of day when the clock was last looked at, since 1970. Files are stamped with it.
    pub(crate) fn time_of_day(&self) -> Duration {
        let started = u64::try_from(self.started.as_nanosecond()).unwrap_or(0);
        Duration::from_nanos(started.saturating_add(self.last()))
    }
}

/// `wasi:clocks/wall-clock`'s record.
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

/// Becomes ready when the hook's clock has reached a time.
struct Deadline {
    clock: Arc<HookClock>,
    services: Arc<dyn HookServices>,
    due: u64,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Deadline {
    async fn ready(&mut self) {
        match self.due.checked_sub(self.clock.last()) {
            // Already there: still give way, a guest may ask in a loop.
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

/// Reads the clock; a call like any other.
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
