//! The hook's own clocks. They start with the hook and advance with its CPU time, measured in fuel, and its
//! sleeps, so that a replay sees the same times (`docs/design/sandbox.md`).

mod host;

pub(crate) use host::link;

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use periapt_host_api::Timestamp;

use crate::fuel;

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

    /// Advances the clock by the time for which a call waited.
    pub(crate) fn waited(&self, time: Duration) {
        self.slept.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns the time of day at the last reading, since 1970. Files get it as their times.
    pub(crate) fn time_of_day(&self) -> Duration {
        let started = u64::try_from(self.started.as_nanosecond()).unwrap_or(0);
        Duration::from_nanos(started.saturating_add(self.last()))
    }
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
