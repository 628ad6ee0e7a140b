//! What the sandbox is built with, and what one hook may use.

use std::time::Duration;

use periapt_host_api::budget::{BudgetKey, BudgetSettings};

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
    /// How many bytes of a memory slot stay resident when a hook ends and are written anew rather than given back to
    /// the kernel: as many as the guest's memory has, but no more than these. A page that was given back is a fault of
    /// the next hook that writes it.
    pub resident_bytes: u64,
    /// How often a hook that computes gives way to the others.
    pub tick: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hooks_in_flight: 64,
            largest_memory: 1 << 30,
            resident_bytes: RESIDENT_BYTES,
            // Short enough that a spinning hook delays nobody noticeably, long enough to cost nothing.
            tick: Duration::from_millis(5),
        }
    }
}

/// All of an interpreter with a charm in it, which has 27 MB. Its hooks write to 9 MB here and there; writing the 27 anew
/// takes a third of the time of that many faults (docs/performance.md). It is an eighth of the memory that a hook in flight
/// is counted with, and given back when the last copy of its component is dropped, as a runner does with an idle charm.
const RESIDENT_BYTES: u64 = 32 << 20;

/// What one hook may use (`docs/design/sandbox.md`); past each of them it ends with a message of its own.
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
    /// Those of a hook whose application and model say nothing else.
    fn default() -> Self {
        Self::of_hook(&BudgetSettings::default())
    }
}

/// Files and directories in `/tmp`: each takes some hundred bytes of the host's memory beside its content.
const TMP_FILES: u64 = 10_000;

impl Budgets {
    /// Those of a hook.
    pub fn of_hook(settings: &BudgetSettings) -> Self {
        Self::within(settings, BudgetKey::HookTimeout)
    }

    /// Those of an action, which may take longer.
    pub fn of_action(settings: &BudgetSettings) -> Self {
        Self::within(settings, BudgetKey::ActionTimeout)
    }

    fn within(settings: &BudgetSettings, timeout: BudgetKey) -> Self {
        Self {
            memory: settings.value(BudgetKey::HookMemoryLimit),
            fuel: Self::cpu(Duration::from_secs(settings.value(BudgetKey::HookCpuBudget))),
            wall: Duration::from_secs(settings.value(timeout)),
            host_calls: settings.value(BudgetKey::HookCallLimit),
            tmp_bytes: settings.value(BudgetKey::HookTmpLimit),
            tmp_files: TMP_FILES,
        }
    }

    /// CPU time as fuel.
    pub fn cpu(time: Duration) -> u64 {
        let fuel = time.as_nanos() * u128::from(FUEL_PER_SECOND) / 1_000_000_000;
        u64::try_from(fuel).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_set_is_as_the_design_says() {
        let budgets = Budgets::default();
        assert_eq!((budgets.memory, budgets.tmp_bytes), (256 << 20, 64 << 20));
        assert_eq!((budgets.fuel, budgets.host_calls), (30 * FUEL_PER_SECOND, 1_000_000));
        assert_eq!(budgets.wall, Duration::from_secs(300));
        assert_eq!(Budgets::of_action(&BudgetSettings::default()).wall, Duration::from_secs(3600));
    }

    #[test]
    fn what_was_set_counts() {
        let mut settings = BudgetSettings::default();
        for (key, text) in [
            (BudgetKey::HookMemoryLimit, "32M"),
            (BudgetKey::HookCpuBudget, "2s"),
            (BudgetKey::HookTimeout, "20s"),
            (BudgetKey::ActionTimeout, "40s"),
            (BudgetKey::HookCallLimit, "5000"),
            (BudgetKey::HookTmpLimit, "0"),
        ] {
            settings.set(key, text).unwrap();
        }
        let (hook, action) = (Budgets::of_hook(&settings), Budgets::of_action(&settings));
        assert_eq!((hook.memory, hook.fuel), (32 << 20, 2 * FUEL_PER_SECOND));
        assert_eq!((hook.wall.as_secs(), action.wall.as_secs()), (20, 40));
        assert_eq!((hook.host_calls, hook.tmp_bytes), (5_000, 0));
    }
}
