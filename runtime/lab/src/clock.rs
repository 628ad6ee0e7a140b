//! Virtual time.

use std::time::Duration;

use jiff::SignedDuration;
use periapt_hook::CallTime;
use periapt_host_api::Timestamp;
use periapt_uniter::Timeline;

/// The time at which every laboratory starts.
const BEGINNING: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The two clocks of a laboratory: the wall clock, and the clock of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clock {
    now: Timestamp,
    boot_ms: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        // Not 0, so that 0 never means the beginning.
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

    /// Lets time pass until the clock of leases shows a time. A past time has no effect.
    pub(crate) fn pass_until(&mut self, boot_ms: u64) {
        self.pass(Duration::from_millis(boot_ms.saturating_sub(self.boot_ms)));
    }

    /// Returns the time on the clock of leases, in milliseconds, when the wall clock reaches a time.
    pub(crate) fn boot_ms_at(&self, at: Timestamp) -> u64 {
        Timeline::new(self.now, self.boot_ms).boot_ms(at)
    }

    /// Sets the wall clock. The clock of leases cannot be set.
    pub(crate) fn set(&mut self, by: SignedDuration) {
        let end = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
        self.now = self.now.checked_add(by).unwrap_or(end);
    }
}

/// Returns a point in time some milliseconds later, or the last one there is.
pub(crate) fn later(time: Timestamp, milliseconds: u64) -> Timestamp {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    time.checked_add(SignedDuration::from_millis(milliseconds)).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_pass_alike_and_only_one_can_be_set() {
        let mut clock = Clock::new();
        let (now, boot) = (clock.now(), clock.boot_ms());
        clock.pass(Duration::from_millis(1_500));
        assert_eq!((clock.now(), clock.boot_ms()), (later(now, 1_500), boot + 1_500));
        clock.pass_until(boot);
        assert_eq!(clock.now(), later(now, 1_500));
        assert_eq!(clock.boot_ms_at(later(now, 2_000)), boot + 2_000);
        clock.set(SignedDuration::from_secs(-1));
        assert_eq!((clock.now(), clock.boot_ms()), (later(now, 500), boot + 1_500));
        clock.pass_until(boot + 2_000);
        assert_eq!((clock.now(), clock.boot_ms()), (later(now, 1_000), boot + 2_000));
    }

    #[test]
    fn who_waits_for_a_fraction_of_a_millisecond_finds_it_passed() {
        let mut clock = Clock::new();
        let at = clock.now().checked_add(SignedDuration::from_micros(1)).unwrap();
        clock.pass_until(clock.boot_ms_at(at));
        assert!(clock.now() >= at);
    }
}
