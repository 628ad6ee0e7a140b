//! The meter of host calls and of their cost beyond the hook's own instructions.

use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::{AsContext, AsContextMut, Trap};

use crate::fuel::{BYTE_FUEL, HOST_CALL_FUEL};

/// The count of one hook's host calls. A call with access to the store pays its fuel at once ([`Meter::settle`]). Calls
/// without it (streams, files, random bytes) add to a debt, which the next call with access collects, or the end of the
/// hook.
///
/// The hook runs on one fiber, so the atomics are never contended. They let resources that outlive a call share the
/// meter.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: u64,
    calls: AtomicU64,
    debt: AtomicU64,
}

/// An error of a hook that exceeds its number of host calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {limit} host calls")]
pub(crate) struct TooManyCalls {
    pub(crate) limit: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, calls: AtomicU64::new(0), debt: AtomicU64::new(0) }
    }

    /// Counts one call with its bytes.
    pub(crate) fn call(&self, bytes: u64) -> Result<(), TooManyCalls> {
        self.debt.fetch_add(HOST_CALL_FUEL, Ordering::Relaxed);
        self.bytes(bytes);
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        if before >= self.limit { Err(TooManyCalls { limit: self.limit }) } else { Ok(()) }
    }

    /// Charges for bytes without counting a call, as the size of an answer is known only afterwards.
    pub(crate) fn bytes(&self, bytes: u64) {
        let fuel = bytes.saturating_mul(BYTE_FUEL);
        // An overflow is impossible: a call moves a few megabytes at most, and a hook whose debt exceeds its budget
        // ends at the next tick.
        self.debt.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Charges for other work of the host.
    pub(crate) fn work(&self, fuel: u64) {
        self.debt.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Charges for lines of output beyond their bytes. The host stamps and logs each line like a call, and one write
    /// may contain 65,536 empty lines.
    pub(crate) fn lines(&self, lines: u64) {
        self.debt.fetch_add(lines.saturating_mul(HOST_CALL_FUEL), Ordering::Relaxed);
    }

    /// Returns the debt.
    #[cfg(test)]
    pub(crate) fn owed(&self) -> u64 {
        self.debt.load(Ordering::Relaxed)
    }

    /// Returns the number of host calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Fails with "out of fuel" if the debt exceeds the fuel. It takes no fuel: at an epoch tick, running code holds
    /// its own count of fuel, and would overwrite the store's.
    pub(crate) fn check(&self, store: impl AsContext) -> wasmtime::Result<()> {
        let debt = self.debt.load(Ordering::Relaxed);
        if debt > store.as_context().get_fuel()? { Err(Trap::OutOfFuel.into()) } else { Ok(()) }
    }

    /// Takes the debt from the store's fuel, in a host call or at the hook's end. Fails with "out of fuel" if there is
    /// too little.
    pub(crate) fn settle(&self, mut store: impl AsContextMut) -> wasmtime::Result<()> {
        let debt = self.debt.swap(0, Ordering::Relaxed);
        if debt == 0 {
            return Ok(());
        }
        let mut store = store.as_context_mut();
        let fuel = store.get_fuel()?;
        store.set_fuel(fuel.saturating_sub(debt))?;
        if debt > fuel { Err(Trap::OutOfFuel.into()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_after_the_last_allowed_one_is_refused() {
        let meter = Meter::new(2);
        assert_eq!(meter.call(0), Ok(()));
        assert_eq!(meter.call(0), Ok(()));
        assert_eq!(meter.call(0), Err(TooManyCalls { limit: 2 }));
    }

    #[test]
    fn a_call_owes_its_crossing_and_its_bytes() {
        let meter = Meter::new(10);
        meter.call(1000).unwrap();
        assert_eq!(meter.owed(), HOST_CALL_FUEL + 1000 * BYTE_FUEL);
    }

    #[test]
    fn a_line_owes_as_much_as_a_call() {
        let meter = Meter::new(10);
        meter.lines(3);
        assert_eq!((meter.owed(), meter.calls()), (3 * HOST_CALL_FUEL, 0));
    }
}
