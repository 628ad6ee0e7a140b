//! Usage of units by hooks: counters that only grow. The units themselves keep them, so they outlive the journal's
//! records. Beside it, the use that workloads make of hosts, as agents reported it last.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, UnitName,
    container::WorkloadsReport,
    journal::{HookCosts, HookOutcome},
};

/// The units of fuel that stand for one second of CPU time: a constant, so that a budget and a bill mean the same on
/// every machine. `runtime/sandbox/src/fuel.rs` says how it was measured.
pub const FUEL_PER_SECOND: u64 = 3_000_000_000;

/// The usage of one or more units, by committed and by failed hooks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Usage {
    /// The number of hooks that ran.
    pub hooks: u64,
    /// The number of hooks that failed.
    pub failed: u64,
    /// The fuel that the hooks used; see [`Usage::cpu_us`].
    pub fuel: u64,
    /// The wall time, in microseconds.
    pub wall_us: u64,
    /// The most linear memory of one hook, in bytes.
    pub peak_memory: u64,
    /// The number of host calls.
    pub host_calls: u64,
    /// The bytes of log.
    pub log_bytes: u64,
}

impl Usage {
    /// Returns true if all counters are zero.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts one run. A skipped or moot hook counts for nothing.
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

    /// Adds another usage. Counters saturate at their maximum.
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

    /// Returns the CPU time, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        let microseconds = u128::from(self.fuel) * 1_000_000 / u128::from(FUEL_PER_SECOND);
        u64::try_from(microseconds).unwrap_or(u64::MAX)
    }
}

/// The usage of a model since its creation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelUsage {
    /// The usage of all applications, removed ones included.
    pub total: Usage,
    /// The usage of removed applications.
    pub removed: Usage,
    /// The usage of each present application.
    pub applications: BTreeMap<ApplicationName, ApplicationUsage>,
    /// The usage of all present workloads.
    #[serde(default, skip_serializing_if = "WorkloadUsage::is_none")]
    pub workloads: WorkloadUsage,
}

/// The usage of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ApplicationUsage {
    /// The usage of all units, removed ones included.
    pub total: Usage,
    /// The usage of removed units.
    pub removed: Usage,
    /// The usage of each present unit.
    pub units: BTreeMap<UnitName, Usage>,
    /// The usage of the workloads of each unit that has some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workloads: BTreeMap<UnitName, WorkloadUsage>,
}

/// The usage of the workloads of one or more units, as their agents reported it last. Times and bytes count from the time
/// at which an agent began to run the workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkloadUsage {
    /// The number of containers and WebAssembly workloads.
    pub containers: u64,
    /// The bytes of memory that they may use.
    pub memory_limit: u64,
    /// The bytes of memory that they used.
    pub memory: u64,
    /// The processor time, in milliseconds.
    pub cpu_ms: u64,
    /// The bytes in the storage that they can write. Containers of a unit may share some, which is then counted for each.
    pub storage: u64,
    /// The number of connections with hosts outside and other units.
    pub connections: u64,
    /// The bytes that came in by them.
    pub received: u64,
    /// The bytes that went out by them.
    pub sent: u64,
}

impl WorkloadUsage {
    /// Returns true if there are no workloads.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the usage of one unit, each of whose containers may use so much memory.
    pub fn of(report: &WorkloadsReport, memory_limit: u64) -> Self {
        let containers = u64::try_from(report.containers.len()).unwrap_or(u64::MAX);
        let mut usage = Self {
            containers,
            memory_limit: memory_limit.saturating_mul(containers),
            connections: report.traffic.connections,
            received: report.traffic.received,
            sent: report.traffic.sent,
            ..Self::default()
        };
        for used in report.containers.values().filter_map(|container| container.usage) {
            usage.memory = usage.memory.saturating_add(used.memory);
            usage.cpu_ms = usage.cpu_ms.saturating_add(used.cpu_ms);
            usage.storage = usage.storage.saturating_add(used.storage);
        }
        usage
    }

    /// Adds another usage. Counters saturate at their maximum.
    pub fn add(&mut self, other: &Self) {
        let Self { containers, memory_limit, memory, cpu_ms, storage, connections, received, sent } = self;
        *containers = containers.saturating_add(other.containers);
        *memory_limit = memory_limit.saturating_add(other.memory_limit);
        *memory = memory.saturating_add(other.memory);
        *cpu_ms = cpu_ms.saturating_add(other.cpu_ms);
        *storage = storage.saturating_add(other.storage);
        *connections = connections.saturating_add(other.connections);
        *received = received.saturating_add(other.received);
        *sent = sent.saturating_add(other.sent);
    }
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
