//! Counts host calls, and what they cost the host beyond the hook's own instructions.

use std::sync::atomic::{AtomicU64, Ordering};

use wasmtime::{AsContext, AsContextMut, Trap};

use crate::fuel::{BYTE_FUEL, HOST_CALL_FUEL};

/// One hook's count of host calls. Calls that know their store pay at once ([`Meter::settle`]); those that do
/// not (streams, files, random bytes) leave a debt, which the next call that does collects, or the end.
///
/// The hook runs on one fiber, so the atomics are never contended; they make the meter shareable with the
/// resources that outlive a call.
#[derive(Debug)]
pub(crate) struct Meter {
    limit: u64,
    calls: AtomicU64,
    debt: AtomicU64,
}

/// The hook made more host calls than its budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {limit} host calls")]
pub(crate) struct TooManyCalls {
    pub(crate) limit: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, calls: AtomicU64::new(0), debt: AtomicU64::new(0) }
    }

    /// Counts one call that moves so many bytes.
    pub(crate) fn call(&self, bytes: u64) -> Result<(), TooManyCalls> {
        self.debt.fetch_add(HOST_CALL_FUEL, Ordering::Relaxed);
        self.bytes(bytes);
        let before = self.calls.fetch_add(1, Ordering::Relaxed);
        if before >= self.limit { Err(TooManyCalls { limit: self.limit }) } else { Ok(()) }
    }

    /// Charges for bytes without counting a call: an answer's size is known only afterwards.
    pub(crate) fn bytes(&self, bytes: u64) {
        let fuel = bytes.saturating_mul(BYTE_FUEL);
        // It cannot overflow: a call moves some megabytes at most, and a hook whose debt is beyond its budget ends at
        // the next tick.
        self.debt.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Charges for work of the host's that neither calls nor bytes tell of.
    pub(crate) fn work(&self, fuel: u64) {
        self.debt.fetch_add(fuel, Ordering::Relaxed);
    }

    /// Charges for lines of output beyond their bytes: each is timed and logged like a call of its own, and one
    /// write may bring 65,536 that are empty.
    pub(crate) fn lines(&self, lines: u64) {
        self.debt.fetch_add(lines.saturating_mul(HOST_CALL_FUEL), Ordering::Relaxed);
    }

    /// What is owed.
    #[cfg(test)]
    pub(crate) fn owed(&self) -> u64 {
        self.debt.load(Ordering::Relaxed)
    }

    /// Host calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Out of fuel if more is owed than there is. Nothing is taken: at a tick of the epoch the code that runs
    /// holds its own count of fuel, and would put back what is taken out of the store's.
    pub(crate) fn check(&self, store: impl AsContext) -> wasmtime::Result<()> {
        let debt = self.debt.load(Ordering::Relaxed);
        if debt > store.as_context().get_fuel()? { Err(Trap::OutOfFuel.into()) } else { Ok(()) }
    }

    /// Takes what is owed out of the store's fuel, within a host call or when the hook is over; out of fuel if that is not enough.
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
