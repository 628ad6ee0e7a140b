//! A controller's clock on virtual time. Its wall clock is set forward and back.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
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
}

impl HostClock {
    /// Starts a clock that is right.
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), ahead_ms: Arc::default() }
    }

    /// Sets the wall clock to so much ahead of the right time.
    pub(super) fn set_ahead(&self, by_ms: i64) {
        self.ahead_ms.store(by_ms, Ordering::Relaxed);
    }
}

impl Clock for HostClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start + self.began.elapsed() + SignedDuration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration.min(Duration::from_secs(60))).boxed()
    }
}
