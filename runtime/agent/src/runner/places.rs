//! The limit on concurrent hooks, by their memory budgets.
//!
//! A waiting hook (for a lease, in a sleep) keeps its place, because it keeps its memory. So the number of places
//! depends on the machine's memory, and not on its cores: computing hooks yield to each other at each tick of the
//! epoch.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one runner, given out in the order of requests, whatever their size.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// The instances in the engine's pool.
    instances: Arc<Semaphore>,
    /// The memory, in MiB.
    memory: Arc<Semaphore>,
    total: u32,
}

/// A place for a running hook, released on drop.
#[derive(Debug)]
pub(super) struct Place {
    _instance: OwnedSemaphorePermit,
    _memory: OwnedSemaphorePermit,
}

impl Places {
    /// Creates the places for some hooks, whose memory budgets add up to at most `memory_mib`.
    pub(super) fn new(hooks: usize, memory_mib: u32) -> Self {
        let total = memory_mib.max(1);
        let permits = usize::try_from(total).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            instances: Arc::new(Semaphore::new(hooks.clamp(1, Semaphore::MAX_PERMITS))),
            memory: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            total,
        }
    }

    /// Waits for a place for a hook with a budget of `bytes`. A hook with a larger budget than the whole memory runs
    /// alone. Returns none only when the runner ends.
    pub(super) async fn take(&self, bytes: u64) -> Option<Place> {
        let mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX).clamp(1, self.total);
        let memory = Arc::clone(&self.memory).acquire_many_owned(mib).await.ok()?;
        let instance = Arc::clone(&self.instances).acquire_owned().await.ok()?;
        Some(Place { _instance: instance, _memory: memory })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn hooks_run_together_as_far_as_their_budgets_fit() {
        let places = Places::new(10, 100);
        let large = places.take(70 * MIB).now_or_never().unwrap().unwrap();
        let _small = places.take(30 * MIB - 1).now_or_never().unwrap().unwrap();
        assert!(places.take(1).now_or_never().is_none());
        drop(large);
        assert!(places.take(71 * MIB).now_or_never().is_none());
        assert!(places.take(70 * MIB).now_or_never().is_some());
    }

    #[test]
    fn however_little_they_need_there_are_no_more_than_the_pool_holds() {
        let places = Places::new(2, 100);
        let two = [places.take(MIB), places.take(MIB)].map(|place| place.now_or_never().unwrap().unwrap());
        assert!(places.take(MIB).now_or_never().is_none());
        drop(two);
    }

    #[test]
    fn a_hook_that_may_use_more_than_there_is_runs_alone() {
        let places = Places::new(10, 100);
        let all = places.take(1 << 40).now_or_never().unwrap().unwrap();
        assert!(places.take(1).now_or_never().is_none());
        drop(all);
        assert!(places.take(1).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_large_one_that_waits_is_not_passed_by_small_ones() {
        let places = Places::new(10, 100);
        let first = places.take(60 * MIB).await.unwrap();
        let mut large = Box::pin(places.take(90 * MIB));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(places.take(MIB).now_or_never().is_none());
        drop(first);
        assert!(large.as_mut().now_or_never().is_some());
    }
}
