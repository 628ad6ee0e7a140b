//! Time and chance, as the controller draws them from the world. Tests move and seed their own.

use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::Timestamp;

/// The longest that is slept in one piece: a wall clock that jumps is noticed after that.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The controller's clocks.
pub trait Clock: Send + Sync + 'static {
    /// The time, for people and for due dates.
    fn now(&self) -> Timestamp;

    /// Milliseconds of a clock that never goes back, from any start: leases lapse by it.
    fn monotonic_ms(&self) -> u64;

    /// Ends after so long by this clock, or some time before: who waits looks again.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
}

/// Where ids and other chance comes from.
pub trait RandomSource: Send + Sync + 'static {
    /// Fresh random bytes.
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
            // Linux answers for ever once it has started; should it not, the standard library's own source,
            // which ends the process without one, is asked.
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
