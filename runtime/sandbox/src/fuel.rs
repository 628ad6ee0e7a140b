//! What computing costs. Fuel is exact: the same hook with the same answers uses the same amount on every
//! machine, and in replay.

/// How many units of fuel stand for one second of CPU time.
///
/// One unit is about one WebAssembly instruction. MEASURED
pub const FUEL_PER_SECOND: u64 = 1_000_000_000;

/// What any host call costs beside the instructions around it: crossing the border takes about 150 ns, which
/// is what this many instructions take.
pub(crate) const HOST_CALL_FUEL: u64 = 200;

/// What each byte costs that crosses the border in either direction. It is copied, checked and recorded.
pub(crate) const BYTE_FUEL: u64 = 1;

/// Fuel as nanoseconds of CPU time.
pub(crate) fn nanoseconds(fuel: u64) -> u64 {
    let nanoseconds = u128::from(fuel) * 1_000_000_000 / u128::from(FUEL_PER_SECOND);
    u64::try_from(nanoseconds).unwrap_or(u64::MAX)
}
