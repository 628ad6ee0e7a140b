//! Time that passes only when it is told to.

use std::time::Duration;

use jiff::SignedDuration;
use periapt_hook::CallTime;
use periapt_host_api::Timestamp;

/// When every laboratory begins.
const BEGINNING: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The two clocks of a laboratory: the one for people, and the one of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    now: Timestamp,
    boot_ms: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        // Not 0, so that nobody takes "never" for "at the beginning".
        Self { now: BEGINNING, boot_ms: 1_000 }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn boot_ms(&self) -> u64 {
        self.boot_ms
    }

    pub(crate) fn call_time(&self) -> CallTime {
        CallTime { at: self.now, boot_ms: self.boot_ms }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.boot_ms = self.boot_ms.saturating_add(milliseconds);
        self.now = later(self.now, milliseconds);
    }

    /// Goes on to a point in time; one that is past already is now.
    pub(crate) fn pass_until(&mut self, at: Timestamp) {
        let left = at.duration_since(self.now).as_millis();
        // Rounded up: whoever waits for `at` must find it reached.
        let exact = later(self.now, u64::try_from(left).unwrap_or(0)) >= at;
        let left = u64::try_from(left).unwrap_or(0).saturating_add(u64::from(!exact));
        self.pass(Duration::from_millis(left));
    }

    /// When the clock of leases will stand at some milliseconds.
    pub(crate) fn when(&self, boot_ms: u64) -> Timestamp {
        later(self.now, boot_ms.saturating_sub(self.boot_ms))
    }
}

/// A point in time some milliseconds later; at the end of time it stays there.
pub(crate) fn later(time: Timestamp, milliseconds: u64) -> Timestamp {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    time.checked_add(SignedDuration::from_millis(milliseconds)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_pass_alike_and_neither_goes_back() {
        let mut clock = Clock::new();
        let (now, boot) = (clock.now(), clock.boot_ms());
        clock.pass(Duration::from_millis(1_500));
        assert_eq!((clock.now(), clock.boot_ms()), (later(now, 1_500), boot + 1_500));
        clock.pass_until(now);
        assert_eq!(clock.now(), later(now, 1_500));
        clock.pass_until(later(now, 2_000));
        assert_eq!(clock.when(clock.boot_ms()), later(now, 2_000));
    }

    #[test]
    fn who_waits_for_a_fraction_of_a_millisecond_finds_it_passed() {
        let mut clock = Clock::new();
        let at = clock.now().checked_add(SignedDuration::from_micros(1)).unwrap();
        clock.pass_until(at);
        assert!(clock.now() >= at);
    }
}
