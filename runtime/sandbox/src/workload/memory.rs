//! The memory of a workload: a bound for each instance, and one for all of them together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use wasmtime::ResourceLimiter;

use crate::limits::Limiter;

/// The linear memory that is left for all instances of a workload.
#[derive(Debug)]
pub(super) struct SharedMemory(AtomicU64);

impl SharedMemory {
    pub(super) fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(bytes)))
    }

    fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    fn give(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    #[cfg(test)]
    fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The limiter of one instance.
#[derive(Debug)]
pub(super) struct WorkloadLimiter {
    own: Limiter,
    shared: Arc<SharedMemory>,
    taken: u64,
    last: u64,
    is_crowded: bool,
}

impl WorkloadLimiter {
    pub(super) fn new(limit: u64, shared: &Arc<SharedMemory>) -> Self {
        let shared = Arc::clone(shared);
        Self { own: Limiter::new(limit), shared, taken: 0, last: 0, is_crowded: false }
    }

    /// Returns the instance's own limit, in bytes.
    pub(super) fn limit(&self) -> u64 {
        self.own.limit()
    }

    /// Returns true if the instance's own limit has refused an allocation.
    pub(super) fn refused(&self) -> bool {
        self.own.refused()
    }

    /// Returns true if other instances had the memory that this one asked for.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }
}

impl ResourceLimiter for WorkloadLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if !self.own.memory_growing(current, desired, maximum)? {
            return Ok(false);
        }
        let more = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        if !self.shared.take(more) {
            self.own.give_back();
            self.is_crowded = true;
            return Ok(false);
        }
        self.taken = self.taken.saturating_add(more);
        self.last = more;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        let last = std::mem::take(&mut self.last);
        self.taken = self.taken.saturating_sub(last);
        self.shared.give(last);
        self.own.memory_grow_failed(error)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.own.table_growing(current, desired, maximum)
    }

    fn instances(&self) -> usize {
        self.own.instances()
    }

    fn tables(&self) -> usize {
        self.own.tables()
    }

    fn memories(&self) -> usize {
        self.own.memories()
    }
}

impl Drop for WorkloadLimiter {
    fn drop(&mut self) {
        self.shared.give(self.taken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_share_a_bound_and_give_back_what_they_had() {
        let shared = SharedMemory::new(100);
        let (mut one, mut two) = (WorkloadLimiter::new(80, &shared), WorkloadLimiter::new(80, &shared));
        assert!(one.memory_growing(0, 60, None).unwrap());
        assert!(!one.memory_growing(60, 81, None).unwrap());
        assert!(one.refused() && !one.is_crowded());
        assert!(!two.memory_growing(0, 60, None).unwrap());
        assert!(two.is_crowded() && !two.refused());
        assert!(two.memory_growing(0, 40, None).unwrap());
        two.memory_grow_failed(wasmtime::Error::msg("no pages")).unwrap();
        assert_eq!(shared.left(), 40);
        drop(one);
        assert_eq!(shared.left(), 100);
    }
}
