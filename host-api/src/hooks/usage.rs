//! Usage of units by hooks: counters that only grow. The units themselves keep them, so they outlive the journal's
//! records. Beside it, the use that workloads make of hosts, as agents reported it last.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, ContainerName, UnitName,
    container::{UnitTraffic, WorkloadsReport},
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

/// The counts of a unit's workloads, summed up over all reports of its agents. They only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkloadCounts {
    /// The processor time, in milliseconds.
    pub cpu_ms: u64,
    /// The number of connections with hosts outside and other units.
    pub connections: u64,
    /// The bytes that came in by them.
    pub received: u64,
    /// The bytes that went out by them.
    pub sent: u64,
}

impl WorkloadCounts {
    /// Returns true if nothing was counted.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Adds what a report counts beyond the report before it. An agent's counts begin at zero with each of its starts, so a
    /// report that does not continue the one before is added whole.
    pub fn count(&mut self, report: &WorkloadsReport, before: Option<&WorkloadsReport>) {
        let before = before.filter(|before| before.counted_since == report.counted_since);
        let cpu_before = |name: &ContainerName| before?.containers.get(name)?.usage.map(|usage| usage.cpu_ms);
        for (name, container) in &report.containers {
            let cpu_ms = container.usage.map_or(0, |usage| usage.cpu_ms);
            let more = cpu_ms.saturating_sub(cpu_before(name).unwrap_or(0));
            self.cpu_ms = self.cpu_ms.saturating_add(more);
        }
        let UnitTraffic { connections, received, sent } = report.traffic;
        let traffic = before.map(|before| before.traffic).unwrap_or_default();
        let add = |sum: &mut u64, now: u64, before: u64| {
            *sum = sum.saturating_add(now.saturating_sub(before));
        };
        add(&mut self.connections, connections, traffic.connections);
        add(&mut self.received, received, traffic.received);
        add(&mut self.sent, sent, traffic.sent);
    }
}

/// The usage of the workloads of one or more units, as their agents reported it last. Times, connections and bytes are
/// sums over all agents that ran the workloads, and over these agents' restarts.
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

    /// Returns the usage of one unit by its last report and the sums of all its reports. Each of its containers may use so
    /// much memory.
    pub fn of(report: &WorkloadsReport, counts: &WorkloadCounts, memory_limit: u64) -> Self {
        let containers = u64::try_from(report.containers.len()).unwrap_or(u64::MAX);
        let WorkloadCounts { cpu_ms, connections, received, sent } = *counts;
        let mut usage = Self {
            containers,
            memory_limit: memory_limit.saturating_mul(containers),
            cpu_ms,
            connections,
            received,
            sent,
            ..Self::default()
        };
        for used in report.containers.values().filter_map(|container| container.usage) {
            usage.memory = usage.memory.saturating_add(used.memory);
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
    use crate::{
        Timestamp,
        container::{ContainerReport, ContainerState, ContainerUsage, PodState},
    };

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
    fn counts_of_workloads_go_on_over_restarts_and_nothing_counts_twice() {
        let (agent, next) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        let report = |since, cpu: &[(&str, Option<u64>)], sent| {
            let container = |cpu_ms: Option<u64>| ContainerReport {
                driver: None,
                content: None,
                state: ContainerState::Starting,
                starts: 1,
                pod: PodState::default(),
                usage: cpu_ms.map(|cpu_ms| ContainerUsage { cpu_ms, ..ContainerUsage::default() }),
            };
            WorkloadsReport {
                containers: cpu.iter().map(|(name, cpu)| (name.parse().unwrap(), container(*cpu))).collect(),
                traffic: UnitTraffic { connections: 1, received: 0, sent },
                counted_since: Some(since),
                ..WorkloadsReport::default()
            }
        };
        let mut counts = WorkloadCounts::default();
        let mut before = None;
        for (report, cpu_ms, sent) in [
            (report(agent, &[("web", None)], 5), 0, 5),
            (report(agent, &[("web", Some(700)), ("db", Some(10))], 8), 710, 8),
            (report(agent, &[("web", Some(700)), ("db", Some(10))], 8), 710, 8),
            // A container that is gone takes nothing with it.
            (report(agent, &[("web", Some(900))], 9), 910, 9),
            // Another start of the agent, or another agent: its counts begin at zero, and may be larger already.
            (report(next, &[("web", None)], 0), 910, 9),
            (report(next, &[("web", Some(950)), ("db", Some(1))], 20), 1_861, 29),
            // An agent that counts backwards is wrong, and takes nothing back.
            (report(next, &[("web", Some(0))], 1), 1_861, 29),
        ] {
            counts.count(&report, before.as_ref());
            assert_eq!((counts.cpu_ms, counts.sent), (cpu_ms, sent), "{report:?}");
            before = Some(report);
        }
        assert_eq!((counts.connections, counts.received, counts.is_none()), (2, 0, false));
        counts.sent = u64::MAX;
        counts.count(&report(agent, &[], 1), before.as_ref());
        assert_eq!(counts.sent, u64::MAX);
    }

    #[test]
    fn counters_do_not_start_over() {
        let mut usage = Usage { fuel: u64::MAX, ..Usage::default() };
        usage.add(&Usage { fuel: 1, ..Usage::default() });
        assert_eq!(usage.fuel, u64::MAX);
        assert!(usage.cpu_us() > 0);
    }
}
