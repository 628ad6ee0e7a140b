//! The controller's sources of time and randomness. Tests replace them.

use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::Timestamp;

/// The longest single sleep. A jump of the wall clock is noticed after it.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The controller's clocks.
pub trait Clock: Send + Sync + 'static {
    /// Returns the wall-clock time, for people and for due dates.
    fn now(&self) -> Timestamp;

    /// Returns the milliseconds of a clock that never goes back, from an arbitrary start. Leases expire by it.
    fn monotonic_ms(&self) -> u64;

    /// Sleeps for the duration by this clock, or less. The caller checks the time again.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// A source of random bytes, for ids.
pub trait RandomSource: Send + Sync + 'static {
    /// Returns random bytes.
    fn seed(&self) -> [u8; 16];
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        tokio::time::sleep(duration.min(LONGEST_SLEEP)).boxed()
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandomSource;

impl RandomSource for SystemRandomSource {
    fn seed(&self) -> [u8; 16] {
        let mut seed = [0; 16];
        match getrandom::fill(&mut seed) {
            Ok(()) => seed,
            // Linux always answers once it has started. As a fallback, the standard library's source is used, which
            // ends the process if it has no randomness.
            Err(_) => uuid_from_hasher(),
        }
    }
}

fn uuid_from_hasher() -> [u8; 16] {
    use std::hash::{BuildHasher as _, RandomState};
    let state = RandomState::new();
    let mut seed = [0; 16];
    let (left, right) = seed.split_at_mut(8);
    left.copy_from_slice(&state.hash_one(0_u8).to_le_bytes());
    right.copy_from_slice(&state.hash_one(1_u8).to_le_bytes());
    seed
}
