//! A clock for the age of what a controller shows. The time for which the machine was suspended counts.

use std::{fmt, sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// A clock for ages. It is tokio's, which tests move, and adds the time for which the machine was suspended: tokio's clock
/// stands still meanwhile. Cloning is cheap.
#[derive(Clone)]
pub(super) struct AgeClock {
    /// Returns the time for which the machine was suspended, from an arbitrary start.
    suspended: Arc<dyn Fn() -> Duration + Send + Sync>,
}

/// A moment, as an [`AgeClock`] shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgeMoment {
    /// The moment by tokio's clock.
    pub(super) at: Instant,
    /// The time for which the machine had been suspended by then.
    suspended: Duration,
}

impl AgeClock {
    /// Returns a clock that knows the suspensions of this machine.
    pub(super) fn of_machine() -> Self {
        Self::with_suspensions(suspended)
    }

    /// Returns a clock that takes the time of suspensions from a function.
    pub(super) fn with_suspensions(suspended: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { suspended: Arc::new(suspended) }
    }

    /// Returns the current moment.
    pub(super) fn now(&self) -> AgeMoment {
        // In this order: a suspension between the two reads makes an age longer than it is, and never shorter.
        let suspended = (self.suspended)();
        AgeMoment { at: Instant::now(), suspended }
    }

    /// Returns the time since a moment.
    pub(super) fn since(&self, moment: AgeMoment) -> Duration {
        let suspended = (self.suspended)().saturating_sub(moment.suspended);
        moment.at.elapsed().saturating_add(suspended)
    }
}

impl fmt::Debug for AgeClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgeClock").field("suspended", &(self.suspended)()).finish()
    }
}

/// Returns the time for which this machine was suspended since its boot.
fn suspended() -> Duration {
    // The second clock stands still meanwhile. A thread that waits between the two reads finds too little, so a moment that
    // it notes is taken for an earlier one.
    let boot = read(ClockId::Boottime);
    boot.saturating_sub(read(ClockId::Monotonic))
}

/// Returns the time of one of the machine's clocks.
fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_for_which_a_machine_was_suspended_counts() {
        let slept = Arc::new(AtomicU64::new(7));
        let clock = {
            let slept = Arc::clone(&slept);
            AgeClock::with_suspensions(move || Duration::from_secs(slept.load(Ordering::Relaxed)))
        };
        let moment = clock.now();
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(clock.since(moment), Duration::from_secs(2), "what was before does not count");
        slept.store(67, Ordering::Relaxed);
        assert_eq!(clock.since(moment), Duration::from_secs(62));
        assert_eq!(clock.since(clock.now()), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_a_machine_that_is_awake_is_that_of_tokio() {
        let clock = AgeClock::of_machine();
        let moment = clock.now();
        tokio::time::advance(Duration::from_secs(3_600)).await;
        let since = clock.since(moment);
        // The two clocks of the machine are read one after the other.
        assert!(since.abs_diff(Duration::from_secs(3_600)) < Duration::from_secs(60), "{since:?}");
    }
}
