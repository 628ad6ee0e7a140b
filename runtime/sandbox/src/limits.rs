//! Bounds on what an instance may allocate.

use wasmtime::{ResourceLimiter, Store};

/// Core instances in one component. An adapted module has four; a Python charm with its libraries about
/// fifteen.
pub(crate) const MAX_INSTANCES: u32 = 40;

/// What the host holds for the instances of one component, and for the instance of each module that it shares, in bytes:
/// their globals, and what they know of functions.
pub(crate) const INSTANCE_BYTES: usize = 1 << 20;

/// Memories in one component. One is usual; composed components have one each.
pub(crate) const MAX_MEMORIES: u32 = 4;

/// Tables in one component. Adapted modules have two or three.
pub(crate) const MAX_TABLES: u32 = 40;

/// Entries in one table. A Python charm's table of functions has some 15,000.
pub(crate) const MAX_TABLE_ELEMENTS: u32 = 1 << 16;

/// What a guest may hand to the host in one call, in bytes. The largest sensible argument is a bag of 256 KiB, once as
/// an argument and once more as the text of a hook tool's standard input; the engine's default of 128 MiB would let a hook of 256 MiB make the
/// host allocate half as much again.
pub(crate) const HOST_CALL_BYTES: usize = 2 << 20;

/// Handles to resources that a component may hold at once (open files, streams, pollables).
pub(crate) const MAX_HANDLES: usize = 1_000;

/// Stack of WebAssembly code, in bytes. What is beyond it up to [`ASYNC_STACK`] is there for host functions.
pub(crate) const WASM_STACK: usize = 512 << 10;

/// Stack of the fiber that a hook runs on, in bytes.
pub(crate) const ASYNC_STACK: usize = 2 << 20;

/// Bytes that one call may draw from a random source. The engine's default is 64 MiB.
pub(crate) const MAX_RANDOM_BYTES: u64 = 64 << 10;

/// How many entries the table of host resources may have; each handle may have a pollable and its source.
pub(crate) const MAX_RESOURCES: usize = 3 * MAX_HANDLES;

/// Sets the bounds that lie in the store itself.
pub(crate) fn bound_store<T>(store: &mut Store<T>) {
    store.set_hostcall_fuel(HOST_CALL_BYTES);
    store.set_max_component_handles(MAX_HANDLES);
}

/// Counts linear memory over all memories of an instance, and what the host holds for the hook beside it, and refuses
/// what is beyond the budget.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: u64,
    used: u64,
    /// What the host holds for the hook, in bytes.
    held: u64,
    /// What the last growth added, should the engine fail to carry it out.
    last: u64,
    refused: bool,
}

impl Limiter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, used: 0, held: 0, last: 0, refused: false }
    }

    /// The limit, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The high-water mark of linear memory, in bytes; it never shrinks.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// What is left, in bytes.
    pub(crate) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used).saturating_sub(self.held)
    }

    /// Counts what the host holds for the hook; the caller has looked at [`Self::room`].
    pub(crate) fn hold(&mut self, bytes: u64) {
        self.held = self.held.saturating_add(bytes);
    }

    /// The host holds it no more.
    pub(crate) fn let_go(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Whether an allocation was refused; a trap after that is most likely because of it.
    pub(crate) fn refused(&self) -> bool {
        self.refused
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = u64::try_from(desired.saturating_sub(current)).unwrap_or(u64::MAX);
        if more > self.room() {
            self.refused = true;
            return Ok(false);
        }
        self.used = self.used.saturating_add(more);
        self.last = more;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        // The pool's own bound, or the memory's declared maximum: to the guest it is the same.
        self.used = self.used.saturating_sub(std::mem::take(&mut self.last));
        self.refused = true;
        Ok(())
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE_ELEMENTS as usize)
    }

    fn instances(&self) -> usize {
        MAX_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        MAX_TABLES as usize
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_counted_together() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(!limiter.refused());
        assert!(!limiter.memory_growing(40, 41, None).unwrap());
        assert!(limiter.refused());
        assert_eq!(limiter.used(), 100);
    }

    #[test]
    fn a_growth_that_the_engine_could_not_carry_out_is_given_back() {
        let mut limiter = Limiter::new(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("no pages")).unwrap();
        assert_eq!(limiter.used(), 0);
        assert!(limiter.memory_growing(0, 100, None).unwrap());
    }

    #[test]
    fn what_the_host_holds_is_no_memory_to_grow_into() {
        let mut limiter = Limiter::new(100);
        limiter.hold(60);
        assert!(!limiter.memory_growing(0, 41, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        limiter.let_go(60);
        assert_eq!((limiter.room(), limiter.used()), (60, 40));
    }

    #[test]
    fn a_refused_growth_uses_nothing() {
        let mut limiter = Limiter::new(100);
        assert!(!limiter.memory_growing(0, 101, None).unwrap());
        assert_eq!(limiter.used(), 0);
    }
}
