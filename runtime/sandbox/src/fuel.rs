//! What computing costs. Fuel is exact: the same hook with the same answers uses the same amount on every
//! machine, and in replay.

// How `FUEL_PER_SECOND` was found.
//
// One unit is about one WebAssembly instruction. Measured with `examples/fuel.rs` on an AMD EPYC, in units per
// nanosecond of CPU time: loops that mix numbers 8.2, that read and write memory 12.8, that count 4.7, that call
// and branch 3.0; a loop of nothing but its own jump (the guest `endless_loop`) 1. Ordinary code is calls and
// branches, so 3: a charm that computes gets its seconds or somewhat less, and the worst that a hostile one can
// make of 30 s is 90.
//
// Counting costs 7 and 16 % in the first two loops and far more in those that do nothing else; in a Python guest
// that dispatches events 11 % (`docs/decisions/0007-fuel-counts-cpu.md`).
pub use periapt_host_api::usage::FUEL_PER_SECOND;

/// What any host call costs beside the instructions around it: crossing the border takes about 150 ns.
pub(crate) const HOST_CALL_FUEL: u64 = 500;

/// What each byte costs that crosses the border in either direction: it is copied, checked, written down for
/// the journal and hashed, some 3 ns in all.
pub(crate) const BYTE_FUEL: u64 = 10;

/// What each name of a listing costs: it is read from a directory, checked and sorted, some 500 ns in all.
pub(crate) const LISTED_NAME_FUEL: u64 = 1_500;

/// What bringing a file to the disk costs: a millisecond, as a good disk takes. The hook computes nothing meanwhile, but
/// the disk is everybody's.
pub(crate) const SYNC_FUEL: u64 = FUEL_PER_SECOND / 1_000;

/// Fuel as nanoseconds of CPU time.
pub(crate) fn nanoseconds(fuel: u64) -> u64 {
    let nanoseconds = u128::from(fuel) * 1_000_000_000 / u128::from(FUEL_PER_SECOND);
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}
