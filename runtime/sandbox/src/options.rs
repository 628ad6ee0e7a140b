//! What the sandbox is built with, and what one hook may use.

use std::time::Duration;

use crate::fuel::FUEL_PER_SECOND;

/// Settings of the engine; they hold for all hooks of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How many hooks may be in flight. One more finds the pool exhausted, which is back-pressure and no
    /// failure ([`crate::Busy`]). Memory of the machine divided by a hook's budget is a good value.
    pub hooks_in_flight: u32,
    /// The largest linear memory that any hook may be allowed, in bytes; a budget above it is cut to it. It
    /// reserves addresses, not memory.
    pub largest_memory: u64,
    /// How many bytes of a memory slot stay resident when a hook ends and are cleared by writing rather than
    /// by giving them back to the kernel. With 1 MiB a hook that dirties 200 pages costs 70 µs to clean up
    /// instead of 1,055.
    pub resident_bytes: u64,
    /// How often a hook that computes gives way to the others.
    pub tick: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hooks_in_flight: 64,
            largest_memory: 1 << 30,
            resident_bytes: 1 << 20,
            // Short enough that a spinning hook delays nobody noticeably, long enough to cost nothing.
            tick: Duration::from_millis(5),
        }
    }
}

/// What one hook may use (`design.md` section 5); past each of them it ends with a message of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// Linear memory, all of an instance's memories together, in bytes.
    pub memory: u64,
    /// CPU, in units of fuel; see [`Budgets::cpu`].
    pub fuel: u64,
    /// Wall time from the first instruction to the last.
    pub wall: Duration,
    /// Host calls: those of the contract, and those of WASI that do work.
    pub host_calls: u64,
    /// Bytes in `/tmp`.
    pub tmp_bytes: u64,
    /// Files and directories in `/tmp`.
    pub tmp_files: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            fuel: Self::cpu(Duration::from_secs(30)),
            wall: Duration::from_secs(5 * 60),
            host_calls: 1_000_000,
            tmp_bytes: 64 << 20,
            tmp_files: 10_000,
        }
    }
}

impl Budgets {
    /// What an action may use: as a hook, but for its wall time of an hour; an operator can stop it.
    pub fn of_action() -> Self {
        Self { wall: Duration::from_secs(60 * 60), ..Self::default() }
    }

    /// CPU time as fuel.
    pub fn cpu(time: Duration) -> u64 {
        let fuel = time.as_nanos() * u128::from(FUEL_PER_SECOND) / 1_000_000_000;
        u64::try_from(fuel).unwrap_or(u64::MAX)
    }
}
