//! The limit on concurrent hooks, by their memory budgets.
//!
//! A waiting hook (for a lease, in a sleep) keeps its permit, because it keeps its memory. So the number of permits
//! depends on the machine's memory, and not on its cores: computing hooks yield to each other at each tick of the
//! epoch.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The permits of one runner, given out in the order of requests, whatever their size.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    /// The instances in the engine's pool.
    instances: Arc<Semaphore>,
    /// The memory, in MiB.
    memory: Arc<Semaphore>,
    total: u32,
}

/// A permit for a running hook, released on drop.
#[derive(Debug)]
pub(super) struct HookPermit {
    _instance: OwnedSemaphorePermit,
    _memory: OwnedSemaphorePermit,
}

impl Admission {
    /// Creates the permits for some hooks, whose memory budgets add up to at most `memory_mib`.
    pub(super) fn new(hooks: usize, memory_mib: u32) -> Self {
        let total = memory_mib.max(1);
        let permits = usize::try_from(total).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            instances: Arc::new(Semaphore::new(hooks.clamp(1, Semaphore::MAX_PERMITS))),
            memory: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            total,
        }
    }

    /// Waits for a permit for a hook with a budget of `bytes`. A hook with a larger budget than the whole memory runs
    /// alone. Returns none only when the runner ends.
    pub(super) async fn admit(&self, bytes: u64) -> Option<HookPermit> {
        let mib = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX).clamp(1, self.total);
        let memory = Arc::clone(&self.memory).acquire_many_owned(mib).await.ok()?;
        let instance = Arc::clone(&self.instances).acquire_owned().await.ok()?;
        Some(HookPermit { _instance: instance, _memory: memory })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn hooks_run_together_as_far_as_their_budgets_fit() {
        let admission = Admission::new(10, 100);
        let large = admission.admit(70 * MIB).now_or_never().unwrap().unwrap();
        let _small = admission.admit(30 * MIB - 1).now_or_never().unwrap().unwrap();
        assert!(admission.admit(1).now_or_never().is_none());
        drop(large);
        assert!(admission.admit(71 * MIB).now_or_never().is_none());
        assert!(admission.admit(70 * MIB).now_or_never().is_some());
    }

    #[test]
    fn however_little_they_need_there_are_no_more_than_the_pool_holds() {
        let admission = Admission::new(2, 100);
        let two = [admission.admit(MIB), admission.admit(MIB)]
            .map(|permit| permit.now_or_never().unwrap().unwrap());
        assert!(admission.admit(MIB).now_or_never().is_none());
        drop(two);
    }

    #[test]
    fn a_hook_that_may_use_more_than_there_is_runs_alone() {
        let admission = Admission::new(10, 100);
        let all = admission.admit(1 << 40).now_or_never().unwrap().unwrap();
        assert!(admission.admit(1).now_or_never().is_none());
        drop(all);
        assert!(admission.admit(1).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_large_one_that_waits_is_not_passed_by_small_ones() {
        let admission = Admission::new(10, 100);
        let first = admission.admit(60 * MIB).await.unwrap();
        let mut large = Box::pin(admission.admit(90 * MIB));
        assert!(large.as_mut().now_or_never().is_none());
        assert!(admission.admit(MIB).now_or_never().is_none());
        drop(first);
        assert!(large.as_mut().now_or_never().is_some());
    }
}
