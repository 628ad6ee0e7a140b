//! The cost of computing. Fuel is exact: the same hook with the same answers uses the same amount on every machine, and
//! in replay.

// The choice of `FUEL_PER_SECOND`.
//
// One unit is about one WebAssembly instruction. `examples/fuel.rs` measured, on an AMD EPYC, in units per nanosecond
// of CPU time: loops of arithmetic 8.2, of reads and writes of memory 12.8, of counting 4.7, of calls and branches 3.0;
// a loop of only its own jump (the guest `endless_loop`) 1. Ordinary code is calls and branches, so the value is 3: an
// ordinary charm gets its seconds or slightly less, and a hostile one can turn 30 s into at most 90.
//
// Counting costs 7 and 16 % in the first two loops, and far more in the trivial ones; in a Python guest that dispatches
// events 11 % (`docs/decisions/0007-fuel-counts-cpu.md`).
pub use periapt_host_api::usage::FUEL_PER_SECOND;

/// The fuel of any host call beside its bytes: a call takes about 150 ns.
pub(crate) const HOST_CALL_FUEL: u64 = 500;

/// The fuel of each byte in a call's arguments or result: copying, checking, journaling and hashing take about 3 ns.
pub(crate) const BYTE_FUEL: u64 = 10;

/// The fuel of each name in a listing: reading, checking and sorting take about 500 ns.
pub(crate) const LISTED_NAME_FUEL: u64 = 1_500;

/// The fuel of a sync: one millisecond, the duration on a good disk. The hook does not compute meanwhile, but all hooks
/// share the disk.
pub(crate) const SYNC_FUEL: u64 = FUEL_PER_SECOND / 1_000;

/// Converts fuel to nanoseconds of CPU time.
pub(crate) fn nanoseconds(fuel: u64) -> u64 {
    let nanoseconds = u128::from(fuel) * 1_000_000_000 / u128::from(FUEL_PER_SECOND);
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}
