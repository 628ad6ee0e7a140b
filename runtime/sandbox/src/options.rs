//! The options of the sandbox, and the budgets of a hook.

use std::time::Duration;

use periapt_hook::RecordedBudgets;
use periapt_host_api::budget::{BudgetKey, BudgetSettings};

use crate::fuel::FUEL_PER_SECOND;

/// The options of the engine, for all hooks of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The most hooks in flight. A further hook gets [`crate::Busy`], which is back-pressure and no failure. A good
    /// value is the machine's memory divided by a hook's memory budget.
    pub hooks_in_flight: u32,
    /// The largest linear memory of any hook, in bytes. Larger budgets are reduced to it. It reserves address space,
    /// not memory.
    pub largest_memory: u64,
    /// The most bytes of a memory slot that stay resident after a hook. The engine rewrites these instead of returning
    /// them to the kernel, where the next write to each page would cause a page fault.
    pub resident_bytes: u64,
    /// The interval at which a computing hook yields to others.
    pub tick: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            hooks_in_flight: 64,
            largest_memory: 1 << 30,
            resident_bytes: RESIDENT_BYTES,
            // Short enough that a looping hook delays no other noticeably, long enough to cost nothing.
            tick: Duration::from_millis(5),
        }
    }
}

/// The memory of a Python interpreter with a charm, which is 27 MB. Hooks write to 9 MB of scattered pages; rewriting
/// 27 MB takes a third of the time of as many page faults (docs/performance.md). The value is an eighth of the memory
/// that a hook in flight counts for. The engine returns it when the last copy of a component is dropped, as a runner
/// does with idle charms.
const RESIDENT_BYTES: u64 = 32 << 20;

/// The budgets of one hook (`docs/design/sandbox.md`). Exceeding one ends the hook with a message for that budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budgets {
    /// The linear memory of all memories together, in bytes.
    pub memory: u64,
    /// The CPU time, in units of fuel; see [`Budgets::cpu`].
    pub fuel: u64,
    /// The wall time of the whole run.
    pub wall: Duration,
    /// The number of host calls: those of the contract, and those of WASI that do work.
    pub host_calls: u64,
    /// The bytes in `/tmp`.
    pub tmp_bytes: u64,
    /// The files and directories in `/tmp`.
    pub tmp_files: u64,
}

impl Default for Budgets {
    /// Returns the budgets of a hook without settings in its application and model.
    fn default() -> Self {
        Self::of_hook(&BudgetSettings::default())
    }
}

/// The most files and directories in `/tmp`: each takes some hundred bytes of host memory beside its content.
const TMP_FILES: u64 = 10_000;

impl Budgets {
    /// Returns the budgets of a hook.
    pub fn of_hook(settings: &BudgetSettings) -> Self {
        Self::within(settings, BudgetKey::HookTimeout)
    }

    /// Returns the budgets of an action, which may take longer.
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

    /// Converts CPU time to fuel.
    pub fn cpu(time: Duration) -> u64 {
        let fuel = time.as_nanos() * u128::from(FUEL_PER_SECOND) / 1_000_000_000;
        u64::try_from(fuel).unwrap_or(u64::MAX)
    }
}

impl From<&Budgets> for RecordedBudgets {
    fn from(budgets: &Budgets) -> Self {
        let Budgets { memory, fuel, wall, host_calls, tmp_bytes, tmp_files } = *budgets;
        let wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX);
        Self { memory, fuel, wall_ms, host_calls, tmp_bytes, tmp_files }
    }
}

impl From<RecordedBudgets> for Budgets {
    fn from(budgets: RecordedBudgets) -> Self {
        let RecordedBudgets { memory, fuel, wall_ms, host_calls, tmp_bytes, tmp_files } = budgets;
        Self { memory, fuel, wall: Duration::from_millis(wall_ms), host_calls, tmp_bytes, tmp_files }
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
    fn recorded_budgets_are_those_of_the_run() {
        let budgets = Budgets { wall: Duration::from_millis(1_500), memory: 7, ..Budgets::default() };
        assert_eq!(Budgets::from(RecordedBudgets::from(&budgets)), budgets);
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
