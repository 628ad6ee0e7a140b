//! The clocks of controllers of one log.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use periapt_host_api::{Timestamp, timing::MAX_CLOCK_DIFFERENCE};

use crate::clock::Clock;

/// A wall clock that cannot be set far ahead or back while a controller runs. The time of the log's entries never goes
/// back, so one entry of a clock that is an hour ahead would stop the time of all controllers for an hour, and keep each
/// that starts meanwhile from doing so.
///
/// It shows the machine's wall clock, as long as that agrees with the time which has passed. If the machine's clock is set
/// far off, it counts on by itself, until the two agree again, or the controller that leads has the machine's time, too:
/// after its machine was suspended, a controller counts too little.
pub(crate) struct SteadyClock {
    machine: Arc<dyn Clock>,
    /// The wall-clock time at which the monotonic clock began, in milliseconds since 1970.
    began_ms: AtomicI64,
    /// True while the machine's clock is not shown.
    counts_itself: AtomicBool,
}

impl SteadyClock {
    /// Makes a clock that trusts the machine's now. A starting controller compares it with others.
    pub(crate) fn new(machine: Arc<dyn Clock>) -> Self {
        let began_ms = AtomicI64::new(beginning(&*machine));
        Self { machine, began_ms, counts_itself: AtomicBool::new(false) }
    }

    /// Takes the machine's time again if it is that of another controller.
    pub(crate) fn compare(&self, other: Timestamp) {
        if self.counts_itself.load(Ordering::Relaxed) && clock_difference(self.machine.now(), other).is_none()
        {
            self.began_ms.store(beginning(&*self.machine), Ordering::Relaxed);
        }
    }

    /// Returns the time by the monotonic clock alone.
    fn counted(&self) -> Timestamp {
        let passed = i64::try_from(self.machine.monotonic_ms()).unwrap_or(i64::MAX);
        let counted = self.began_ms.load(Ordering::Relaxed).saturating_add(passed);
        Timestamp::from_millisecond(counted).unwrap_or(Timestamp::MAX)
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let (shown, counted) = (self.machine.now(), self.counted());
        let Some(difference) = clock_difference(shown, counted) else {
            // Clocks are corrected a little all the time.
            self.began_ms.store(beginning(&*self.machine), Ordering::Relaxed);
            if self.counts_itself.swap(false, Ordering::Relaxed) {
                tracing::info!("this machine's clock agrees again with the time that this controller counts");
            }
            return shown;
        };
        if !self.counts_itself.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "this machine's clock was set: it is {difference} the time that this controller counts and goes on with"
            );
        }
        counted
    }

    fn monotonic_ms(&self) -> u64 {
        self.machine.monotonic_ms()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.machine.sleep(duration)
    }
}

/// Returns the wall-clock time at which a machine's monotonic clock began, in milliseconds since 1970.
fn beginning(machine: &dyn Clock) -> i64 {
    let passed = i64::try_from(machine.monotonic_ms()).unwrap_or(i64::MAX);
    machine.now().as_millisecond().saturating_sub(passed)
}

/// Returns how far off a clock is that one of several controllers should not have, such as `70 s behind`; none if it
/// is near enough to the other time.
pub(super) fn clock_difference(own: Timestamp, other: Timestamp) -> Option<String> {
    let difference = own.duration_since(other);
    let direction = if difference.is_negative() { "behind" } else { "ahead of" };
    let is_far = difference.unsigned_abs() > MAX_CLOCK_DIFFERENCE;
    is_far.then(|| format!("{} s {direction}", difference.unsigned_abs().as_secs()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use parking_lot::Mutex;

    use super::*;

    /// A machine of which the test sets both clocks, in milliseconds.
    #[derive(Default)]
    struct Machine(Mutex<(i64, u64)>);

    impl Clock for Machine {
        fn now(&self) -> Timestamp {
            Timestamp::from_millisecond(self.0.lock().0).unwrap()
        }

        fn monotonic_ms(&self) -> u64 {
            self.0.lock().1
        }

        fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
            std::future::pending().boxed()
        }
    }

    const HOUR: i64 = 3_600_000;

    #[test]
    fn a_clock_that_is_set_far_off_is_not_followed_until_it_is_right_again() {
        let machine = Arc::new(Machine::default());
        let clock = SteadyClock::new(Arc::clone(&machine) as _);
        let now = |wall, passed| {
            *machine.0.lock() = (wall, passed);
            clock.now().as_millisecond()
        };
        assert_eq!(now(0, 0), 0);
        assert_eq!(now(10_000, 10_000), 10_000);
        assert_eq!(now(40_500, 20_000), 40_500, "it is corrected a little");
        for hour in [HOUR, -HOUR] {
            assert_eq!(now(41_500 + hour, 21_000), 41_500, "it is set an hour off");
            assert_eq!(now(41_500 + hour, 22_000), 42_500, "and time goes on");
        }
        assert_eq!(now(43_400, 23_000), 43_400, "it is right again");
    }

    #[test]
    fn a_clock_that_others_have_is_followed_again() {
        let machine = Arc::new(Machine::default());
        let clock = SteadyClock::new(Arc::clone(&machine) as _);
        // The machine was suspended for an hour.
        *machine.0.lock() = (HOUR, 1_000);
        assert_eq!(clock.now().as_millisecond(), 1_000);
        clock.compare(Timestamp::from_millisecond(1_000).unwrap());
        assert_eq!(clock.now().as_millisecond(), 1_000, "the others' time is not the machine's either");
        clock.compare(Timestamp::from_millisecond(HOUR + 5_000).unwrap());
        assert_eq!(clock.now().as_millisecond(), HOUR);
    }

    #[test]
    fn a_clock_may_be_a_minute_off() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(clock_difference(at(1_000), at(1_060)), None);
        assert_eq!(clock_difference(at(1_060), at(1_000)), None);
        assert_eq!(clock_difference(at(1_000), at(1_061)).unwrap(), "61 s behind");
        assert_eq!(clock_difference(at(8_200), at(1_000)).unwrap(), "7200 s ahead of");
    }
}
