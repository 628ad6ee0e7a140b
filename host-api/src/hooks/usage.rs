//! What units have used: counters that only grow, kept in the units themselves, so that they outlive the journal's
//! records.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, UnitName,
    journal::{HookCosts, HookOutcome},
};

/// How many units of fuel stand for one second of CPU time; a constant, so that a budget and a bill mean the same on
/// every machine. `runtime/sandbox/src/fuel.rs` says how it was measured.
pub const FUEL_PER_SECOND: u64 = 3_000_000_000;

/// What one or more units have used, by hooks that were committed and by those that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Usage {
    /// Hooks that ran.
    pub hooks: u64,
    /// How many of these failed.
    pub failed: u64,
    /// Fuel; see [`Usage::cpu_us`].
    pub fuel: u64,
    /// Wall time, in microseconds.
    pub wall_us: u64,
    /// The most linear memory that one hook had, in bytes.
    pub peak_memory: u64,
    /// Calls to the host.
    pub host_calls: u64,
    /// Bytes of log.
    pub log_bytes: u64,
}

impl Usage {
    /// Whether nothing was used.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts one run. What was not run, because it was skipped, counts for nothing.
    pub fn count(&mut self, outcome: &HookOutcome, costs: &HookCosts) {
        let failed = match outcome {
            HookOutcome::Handled | HookOutcome::Unhandled => 0,
            HookOutcome::Failed { .. } => 1,
            HookOutcome::Skipped | HookOutcome::Moot => return,
        };
        let run = Self {
            hooks: 1,
            failed,
            fuel: costs.fuel,
            wall_us: costs.wall_us,
            peak_memory: costs.memory,
            host_calls: costs.host_calls,
            log_bytes: costs.log_bytes,
        };
        self.add(&run);
    }

    /// Adds what others used. Counters stop at their end instead of starting over.
    pub fn add(&mut self, other: &Self) {
        let Self { hooks, failed, fuel, wall_us, peak_memory, host_calls, log_bytes } = self;
        *hooks = hooks.saturating_add(other.hooks);
        *failed = failed.saturating_add(other.failed);
        *fuel = fuel.saturating_add(other.fuel);
        *wall_us = wall_us.saturating_add(other.wall_us);
        *peak_memory = (*peak_memory).max(other.peak_memory);
        *host_calls = host_calls.saturating_add(other.host_calls);
        *log_bytes = log_bytes.saturating_add(other.log_bytes);
    }

    /// CPU time, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        let microseconds = u128::from(self.fuel) * 1_000_000 / u128::from(FUEL_PER_SECOND);
        u64::try_from(microseconds).unwrap_or(u64::MAX)
    }
}

/// What a model has used, since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelUsage {
    /// All of it.
    pub total: Usage,
    /// By applications that are gone.
    pub removed: Usage,
    /// By those that are there.
    pub applications: BTreeMap<ApplicationName, ApplicationUsage>,
}

/// What an application has used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationUsage {
    /// All of it.
    pub total: Usage,
    /// By units that are gone.
    pub removed: Usage,
    /// By those that are there.
    pub units: BTreeMap<UnitName, Usage>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up_and_memory_is_the_most_of_one() {
        let costs =
            |memory| HookCosts { fuel: FUEL_PER_SECOND / 2, memory, wall_us: 7, host_calls: 3, log_bytes: 5 };
        let mut usage = Usage::default();
        usage.count(&HookOutcome::Handled, &costs(10));
        usage.count(&HookOutcome::Failed { message: "x".into() }, &costs(30));
        usage.count(&HookOutcome::Unhandled, &costs(20));
        usage.count(&HookOutcome::Skipped, &costs(99));
        assert_eq!((usage.hooks, usage.failed, usage.peak_memory), (3, 1, 30));
        assert_eq!((usage.wall_us, usage.host_calls, usage.log_bytes), (21, 9, 15));
        assert_eq!(usage.cpu_us(), 1_500_000);
    }

    #[test]
    fn counters_do_not_start_over() {
        let mut usage = Usage { fuel: u64::MAX, ..Usage::default() };
        usage.add(&Usage { fuel: 1, ..Usage::default() });
        assert_eq!(usage.fuel, u64::MAX);
        assert!(usage.cpu_us() > 0);
    }
}
