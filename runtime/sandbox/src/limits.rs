//! Limits on the allocations of an instance.

use wasmtime::{ResourceLimiter, Store};

/// The most core instances in a component. An adapted module has four; a Python charm with its libraries has about
/// fifteen.
pub(crate) const MAX_INSTANCES: u32 = 40;

/// The most bytes of host memory for one component's instances, and for each shared module's instance: globals and
/// metadata of functions.
pub(crate) const INSTANCE_BYTES: usize = 1 << 20;

/// The most memories in a component. Most have one; composed components have one for each part.
pub(crate) const MAX_MEMORIES: u32 = 4;

/// The most tables in a component. Adapted modules have two or three.
pub(crate) const MAX_TABLES: u32 = 40;

/// The most entries in a table. A Python charm's function table has about 15,000.
pub(crate) const MAX_TABLE_ELEMENTS: u32 = 1 << 16;

/// The most bytes that a guest may pass to the host in one call. The largest sensible argument is a bag of 256 KiB, as
/// an argument and again as the standard input of a hook tool. With the engine's default of 128 MiB, a hook of 256 MiB
/// could make the host allocate half as much again.
pub(crate) const HOST_CALL_BYTES: usize = 2 << 20;

/// The most resource handles of a component (open files, streams, pollables).
pub(crate) const MAX_HANDLES: usize = 1_000;

/// The stack of WebAssembly code, in bytes. The rest of [`ASYNC_STACK`] is for host functions.
pub(crate) const WASM_STACK: usize = 512 << 10;

/// The stack of a hook's fiber, in bytes.
pub(crate) const ASYNC_STACK: usize = 2 << 20;

/// The most bytes of one call to a random source. The engine's default is 64 MiB.
pub(crate) const MAX_RANDOM_BYTES: u64 = 64 << 10;

/// The most entries in the table of host resources: each handle may have a pollable and its source.
pub(crate) const MAX_RESOURCES: usize = 3 * MAX_HANDLES;

/// Sets the limits of the store.
pub(crate) fn bound_store<T>(store: &mut Store<T>) {
    store.set_hostcall_fuel(HOST_CALL_BYTES);
    store.set_max_component_handles(MAX_HANDLES);
}

/// The limiter of a hook's memory: all linear memories together, and host memory held for the hook.
#[derive(Debug)]
pub(crate) struct Limiter {
    limit: u64,
    used: u64,
    /// The host memory held for the hook, in bytes.
    held: u64,
    /// The last growth, in bytes, in case the engine cannot carry it out.
    last: u64,
    refused: bool,
}

impl Limiter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, used: 0, held: 0, last: 0, refused: false }
    }

    /// Returns the limit, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns the largest size of linear memory so far, in bytes. Linear memory never shrinks.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Returns the remaining bytes.
    pub(crate) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used).saturating_sub(self.held)
    }

    /// Adds host memory held for the hook. The caller has checked [`Self::room`].
    pub(crate) fn hold(&mut self, bytes: u64) {
        self.held = self.held.saturating_add(bytes);
    }

    /// Subtracts released host memory.
    pub(crate) fn let_go(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
    }

    /// Takes the last growth back, which another bound forbids.
    pub(crate) fn give_back(&mut self) {
        self.used = self.used.saturating_sub(std::mem::take(&mut self.last));
    }

    /// Returns true if an allocation was refused, which most likely causes a later trap.
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
        // The pool's limit or the memory's declared maximum applied. Guests see no difference.
        self.give_back();
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
