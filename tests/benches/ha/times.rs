//! Times, in order.

use std::time::Duration;

/// Measured times.
#[derive(Debug, Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
        self.0.sort_unstable();
    }

    /// Returns the time that this percentage of all do not exceed; the longest one for 100.
    pub(crate) fn at(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1) - 1;
        self.0.get(rank).copied().unwrap_or_default()
    }
}
