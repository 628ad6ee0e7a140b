//! The memory of a host that pods may have together (`docs/decisions/0098-*`).

use std::sync::Arc;

use parking_lot::Mutex;
use periapt_host_api::budget::BudgetKey;

/// The memory of the host that pods may have together.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    /// The most bytes; none for any number.
    most: Option<u64>,
    promised: Mutex<u64>,
}

/// The memory that one pod may have. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct PromisedMemory {
    host: Arc<HostMemory>,
    bytes: u64,
}

impl HostMemory {
    /// Creates the memory of a host that promises at most so many bytes.
    pub(crate) fn new(most: Option<u64>) -> Arc<Self> {
        Arc::new(Self { most, promised: Mutex::default() })
    }

    /// Promises memory to a pod. The error says in words how much is left.
    pub(super) fn promise(self: &Arc<Self>, bytes: u64) -> Result<PromisedMemory, String> {
        let mut promise = PromisedMemory { host: Arc::clone(self), bytes: 0 };
        promise.change(bytes)?;
        Ok(promise)
    }
}

impl PromisedMemory {
    /// Changes the promise. An error changes nothing.
    pub(super) fn change(&mut self, bytes: u64) -> Result<(), String> {
        let mut promised = self.host.promised.lock();
        let others = promised.saturating_sub(self.bytes);
        let sum = others.saturating_add(bytes);
        if let Some(most) = self.host.most.filter(|most| bytes > self.bytes && sum > *most) {
            let key = BudgetKey::WorkloadMemoryLimit;
            return Err(format!(
                "its {key} is {}, and the agent's workloads may have {} of memory, of which {} is left: it waits for room",
                key.show(bytes),
                key.show(most),
                key.show(most.saturating_sub(others))
            ));
        }
        (*promised, self.bytes) = (sum, bytes);
        Ok(())
    }
}

impl Drop for PromisedMemory {
    fn drop(&mut self) {
        let mut promised = self.host.promised.lock();
        *promised = promised.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_promises_no_more_memory_than_it_has_for_workloads() {
        let host = HostMemory::new(Some(100 << 20));
        let mut first = host.promise(60 << 20).unwrap();
        let refused = host.promise(50 << 20).unwrap_err();
        assert_eq!(
            refused,
            "its workload-memory-limit is 50M, and the agent's workloads may have 100M of memory, of which 40M is left: it \
             waits for room"
        );
        let second = host.promise(40 << 20).unwrap();
        first.change(61 << 20).unwrap_err();
        first.change(10 << 20).unwrap();
        drop(second);
        first.change(100 << 20).unwrap();
        drop(first);
        assert_eq!(*host.promised.lock(), 0);
        HostMemory::new(None).promise(u64::MAX).unwrap();
    }
}
