//! The waits between attempts.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::Duration,
};

/// Exponential backoff with jitter: waits double up to a bound, and start over after success. The jitter spreads the
/// attempts of clients that fail together, as when a controller restarts.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    jitter: JitterDirection,
    failures: u32,
}

/// The jitter of a wait.
#[derive(Debug, Clone, Copy)]
enum JitterDirection {
    /// Takes off up to half of the wait.
    Shorter,
    /// Adds up to an eighth of the wait.
    Longer,
}

impl Backoff {
    /// Creates waits of at most `first` after the first failure and at most `last` later; each is at least half of
    /// that.
    pub fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, jitter: JitterDirection::Shorter, failures: 0 }
    }

    /// Creates waits of at least `first` after the first failure and at least `last` in the end; each is at most an
    /// eighth longer. Serves attempts that cost much.
    pub fn at_least(first: Duration, last: Duration) -> Self {
        Self { jitter: JitterDirection::Longer, ..Self::new(first, last) }
    }

    /// Creates the backoff of network calls, which finds a restarted controller within a second.
    pub fn network() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(2))
    }

    /// Counts a failure and returns the time to wait.
    pub fn failed(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        let wait = doubled.min(self.last);
        match self.jitter {
            JitterDirection::Shorter => wait.saturating_sub((wait / 2).mul_f64(random_fraction())),
            JitterDirection::Longer => wait.saturating_add((wait / 8).mul_f64(random_fraction())),
        }
    }

    /// Starts over after a success.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// Returns a number from 0 to 1 that differs at each call. It is no secure random number; nothing secret depends on
/// it.
fn random_fraction() -> f64 {
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_the_bound_and_start_over_after_success() {
        let pauses = [100, 200, 400, 700, 700].map(Duration::from_millis);
        let mut backoff = Backoff::new(pauses[0], pauses[4]);
        let mut longer = Backoff::at_least(pauses[0], pauses[4]);
        for pause in pauses {
            let (wait, later) = (backoff.failed(), longer.failed());
            assert!((pause / 2..=pause).contains(&wait), "{wait:?} of {pause:?}");
            assert!((pause..=pause + pause / 8).contains(&later), "{later:?} of {pause:?}");
        }
        backoff.succeeded();
        assert!(backoff.failed() <= pauses[0]);
    }

    #[test]
    fn very_many_failures_do_not_overflow() {
        let mut backoff = Backoff::at_least(SECOND, 9 * SECOND);
        let last = (0..100).map(|_| backoff.failed()).last();
        assert!(last.is_some_and(|last| last >= 9 * SECOND && last <= 11 * SECOND), "{last:?}");
    }

    #[test]
    fn those_that_failed_at_one_moment_come_back_spread_over_half_of_the_wait() {
        let mut tenths = [0; 10];
        for _ in 0..2_000 {
            let part = (Backoff::new(SECOND, SECOND).failed().as_secs_f64() - 0.5) * 20.0;
            tenths[(part as usize).min(9)] += 1;
        }
        // Each bucket expects 200; a count this far off has a probability of 1 in 10^20.
        assert!(tenths.iter().all(|tenth| (80..320).contains(tenth)), "{tenths:?}");
    }
}
