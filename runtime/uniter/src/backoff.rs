//! The waits between attempts.

use std::time::Duration;

/// Waits that double up to a limit, and start over after success.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    last: Duration,
    failures: u32,
}

impl Backoff {
    /// Creates waits from `first` up to `last`.
    pub(crate) fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, failures: 0 }
    }

    /// Creates the waits for network calls: a restarting controller is found again within a second.
    pub(crate) fn network() -> Self {
        Self::new(Duration::from_millis(50), Duration::from_secs(2))
    }

    /// Records a failure, and returns the wait before the next attempt.
    pub(crate) fn failed(&mut self) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1);
        doubled.min(self.last)
    }

    /// Records a success.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_bound_and_start_over_after_success() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(700));
        let waits: Vec<_> = (0..5).map(|_| backoff.failed().as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 700, 700]);
        backoff.succeeded();
        assert_eq!(backoff.failed().as_millis(), 100);
    }

    #[test]
    fn very_many_failures_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(9));
        let last = (0..100).map(|_| backoff.failed()).last();
        assert_eq!(last, Some(Duration::from_secs(9)));
    }
}
