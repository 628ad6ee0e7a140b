//! A controller's clock on virtual time. Its wall clock is set forward and back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use jiff::SignedDuration;
use periapt_controller::Clock;
use periapt_host_api::Timestamp;
use tokio::time::Instant;

/// The clock of one host.
#[derive(Debug, Clone)]
pub(super) struct HostClock {
    began: Instant,
    ahead_ms: Arc<AtomicI64>,
    /// The parts of a million by which the monotonic clock goes too fast.
    fast_ppm: i64,
    /// The time by which the monotonic clock is set back, which no clock is.
    back_ms: Arc<AtomicU64>,
    /// The time that has passed beside the simulation.
    skipped_ms: Arc<AtomicU64>,
}

impl HostClock {
    /// Starts a clock that shows the right time, and whose monotonic part goes too fast by so many parts of a million.
    pub(super) fn new(fast_ppm: i64) -> Self {
        Self {
            began: Instant::now(),
            ahead_ms: Arc::default(),
            fast_ppm,
            back_ms: Arc::default(),
            skipped_ms: Arc::default(),
        }
    }

    /// Lets some time pass at once, by both clocks.
    pub(super) fn skip(&self, by: Duration) {
        self.skipped_ms.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Sets the monotonic clock back for a moment, so that what is to last from now on began long ago.
    pub(super) fn dip(&self, by: Duration) {
        self.back_ms.store(u64::try_from(by.as_millis()).unwrap(), Ordering::Relaxed);
        let back_ms = Arc::clone(&self.back_ms);
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            back_ms.store(0, Ordering::Relaxed);
        });
    }

    /// Sets the wall clock to so much ahead of the right time.
    pub(super) fn set_ahead(&self, by_ms: i64) {
        self.ahead_ms.store(by_ms, Ordering::Relaxed);
    }
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let skipped = Duration::from_millis(self.skipped_ms.load(Ordering::Relaxed));
        let ahead = SignedDuration::from_millis(self.ahead_ms.load(Ordering::Relaxed));
        start + self.began.elapsed() + skipped + ahead
    }

    fn monotonic_ms(&self) -> u64 {
        let passed = i64::try_from(self.began.elapsed().as_millis()).unwrap();
        let shown = passed + passed * self.fast_ppm / 1_000_000;
        let shown = u64::try_from(shown).unwrap() + self.skipped_ms.load(Ordering::Relaxed);
        shown.saturating_sub(self.back_ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration.min(Duration::from_secs(60))).boxed()
    }
}
