//! Budgets: limits on hooks and on workloads that operators set for a controller, a model or an application. The
//! narrowest scope wins (`docs/design/sandbox.md`, `docs/workloads.md`).

use std::{collections::BTreeMap, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{duration, storage::parse_bytes};

/// The settings that limit a hook or a workload, by the keys that `model-config` and `config` take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetKey {
    /// Linear memory of all memories of an instance together, in bytes.
    HookMemoryLimit,
    /// CPU time, in seconds. The sandbox counts it in fuel, so that a budget means the same on every machine.
    HookCpuBudget,
    /// Wall time of a hook, in seconds.
    HookTimeout,
    /// Wall time of an action, in seconds.
    ActionTimeout,
    /// The number of host calls.
    HookCallLimit,
    /// Log output, in bytes. Lines beyond the limit are dropped, and the hook goes on.
    HookLogLimit,
    /// Size of the files in `/tmp`, in bytes.
    HookTmpLimit,
    /// Memory of a unit's container or WebAssembly workload, in bytes.
    WorkloadMemoryLimit,
    /// CPU time of a unit's container, 100 being one core; 0 means all cores of the host.
    WorkloadCpuLimit,
    /// The number of processes and threads of a unit's container.
    WorkloadProcessLimit,
}

/// The kinds of numbers that budgets hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A size in bytes, such as `256M`.
    Bytes,
    /// A duration in seconds, such as `5m`.
    Seconds,
    /// A number, such as `1000000`.
    Count,
}

/// A budget's kind, default and bounds.
struct Rule {
    name: &'static str,
    kind: Kind,
    default: u64,
    least: u64,
    most: u64,
    description: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const HOUR: u64 = 3600;

impl BudgetKey {
    /// All budgets.
    pub const ALL: [Self; 10] = [
        Self::HookMemoryLimit,
        Self::HookCpuBudget,
        Self::HookTimeout,
        Self::ActionTimeout,
        Self::HookCallLimit,
        Self::HookLogLimit,
        Self::HookTmpLimit,
        Self::WorkloadMemoryLimit,
        Self::WorkloadCpuLimit,
        Self::WorkloadProcessLimit,
    ];

    /// Returns true for a limit on workloads. Programs of the level before know limits on hooks alone.
    pub fn is_of_workloads(self) -> bool {
        matches!(self, Self::WorkloadMemoryLimit | Self::WorkloadCpuLimit | Self::WorkloadProcessLimit)
    }

    fn rule(self) -> Rule {
        let rule = |name, kind, default, (least, most), description| Rule {
            name,
            kind,
            default,
            least,
            most,
            description,
        };
        match self {
            // 1 MiB is the least that an interpreter starts in; the engine reserves addresses for 1 GiB.
            Self::HookMemoryLimit => rule(
                "hook-memory-limit",
                Kind::Bytes,
                256 * MIB,
                (MIB, 1024 * MIB),
                "Memory that a hook may use",
            ),
            Self::HookCpuBudget => {
                rule("hook-cpu-budget", Kind::Seconds, 30, (1, HOUR), "CPU time that a hook may use")
            }
            Self::HookTimeout => {
                rule("hook-timeout", Kind::Seconds, 300, (1, 24 * HOUR), "Time that a hook may take")
            }
            Self::ActionTimeout => {
                rule("action-timeout", Kind::Seconds, HOUR, (1, 24 * HOUR), "Time that an action may take")
            }
            Self::HookCallLimit => rule(
                "hook-call-limit",
                Kind::Count,
                1_000_000,
                (1_000, 100_000_000),
                "Calls to the host that a hook may make",
            ),
            // All output of a hook travels in one request to the controller, which takes 8 MiB.
            Self::HookLogLimit => rule(
                "hook-log-limit",
                Kind::Bytes,
                MIB,
                (4 * KIB, 4 * MIB),
                "Log that a hook may write before lines are dropped",
            ),
            Self::HookTmpLimit => rule(
                "hook-tmp-limit",
                Kind::Bytes,
                64 * MIB,
                (0, 1024 * MIB),
                "Files that a hook may have in /tmp",
            ),
            // With less, no container begins: its first process alone takes some MiB.
            Self::WorkloadMemoryLimit => rule(
                "workload-memory-limit",
                Kind::Bytes,
                GIB,
                (16 * MIB, 1024 * GIB),
                "Memory that a container or a WebAssembly workload of a unit may use",
            ),
            Self::WorkloadCpuLimit => rule(
                "workload-cpu-limit",
                Kind::Count,
                0,
                (0, 1_000_000),
                "Percent of one core that a container of a unit may use, 0 for all cores",
            ),
            // The container's own process and a shell with a pipe need some.
            Self::WorkloadProcessLimit => rule(
                "workload-process-limit",
                Kind::Count,
                1_024,
                (16, 1_000_000),
                "Processes and threads that a container of a unit may have",
            ),
        }
    }

    /// Returns the key as operators write it.
    pub fn as_str(self) -> &'static str {
        self.rule().name
    }

    /// Returns a description of one line.
    pub fn description(self) -> &'static str {
        self.rule().description
    }

    /// Returns the default.
    pub fn default_value(self) -> u64 {
        self.rule().default
    }

    /// Returns the largest value that operators can set.
    pub fn most(self) -> u64 {
        self.rule().most
    }

    /// Parses a value. The error says which values are allowed.
    pub fn parse(self, text: &str) -> Result<u64, BudgetError> {
        let rule = self.rule();
        let value = match rule.kind {
            Kind::Bytes => parse_bytes(text),
            Kind::Seconds => duration::whole_seconds(text).map(u64::from),
            Kind::Count => text.parse().ok(),
        };
        match value {
            Some(value) if (rule.least..=rule.most).contains(&value) => Ok(value),
            _ => Err(BudgetError { key: self, text: text.to_owned() }),
        }
    }

    /// Writes a value as operators do, in a form that [`BudgetKey::parse`] reads.
    pub fn show(self, value: u64) -> String {
        match self.rule().kind {
            Kind::Count => value.to_string(),
            Kind::Bytes => in_units(value, &[(1 << 30, "G"), (MIB, "M"), (KIB, "K")], "B"),
            Kind::Seconds => in_units(value, &[(HOUR, "h"), (60, "m")], "s"),
        }
    }

    /// Describes the values that [`BudgetKey::parse`] takes.
    pub(crate) fn expected(self) -> String {
        let rule = self.rule();
        let what = match rule.kind {
            Kind::Bytes => "a size",
            Kind::Seconds => "a duration",
            Kind::Count => "a number",
        };
        format!("{what} from {} to {}", self.show(rule.least), self.show(rule.most))
    }
}

impl fmt::Display for BudgetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no budget key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such budget")]
pub struct UnknownBudget;

impl FromStr for BudgetKey {
    type Err = UnknownBudget;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|key| key.as_str() == text).ok_or(UnknownBudget)
    }
}

/// A value that a budget key cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetError {
    key: BudgetKey,
    text: String,
}

impl std::error::Error for BudgetError {}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} expected {}, got {:?}", self.key, self.key.expected(), self.text)
    }
}

/// The limits that operators set in one scope. Unset budgets are inherited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct BudgetSettings(pub BTreeMap<BudgetKey, u64>);

impl BudgetSettings {
    /// Returns true if no budget is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a budget if it is set.
    pub fn get(&self, key: BudgetKey) -> Option<u64> {
        self.0.get(&key).copied()
    }

    /// Sets a budget from text. An error leaves all budgets unchanged.
    pub fn set(&mut self, key: BudgetKey, text: &str) -> Result<(), BudgetError> {
        self.0.insert(key, key.parse(text)?);
        Ok(())
    }

    /// Unsets a budget, so that it is inherited.
    pub fn reset(&mut self, key: BudgetKey) {
        self.0.remove(&key);
    }

    /// Returns these budgets, and those of `outer` for unset ones.
    pub fn or(&self, outer: &Self) -> Self {
        let mut both = outer.clone();
        both.0.extend(&self.0);
        both
    }

    /// Returns the limits on hooks, and those on workloads.
    pub fn split(self) -> (Self, Self) {
        let (workloads, hooks) = self.0.into_iter().partition(|(key, _)| key.is_of_workloads());
        (Self(hooks), Self(workloads))
    }

    /// Returns a budget, or its default if it is unset.
    pub fn value(&self, key: BudgetKey) -> u64 {
        self.get(key).unwrap_or_else(|| key.default_value())
    }
}

/// Writes a value in the largest unit that divides it.
pub(crate) fn in_units(value: u64, units: &[(u64, &str)], smallest: &str) -> String {
    let fits = units.iter().find(|(size, _)| value != 0 && value.is_multiple_of(*size));
    match fits {
        Some((size, name)) => format!("{}{name}", value / size),
        None if value == 0 => "0".to_owned(),
        None => format!("{value}{smallest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_read_back_and_so_is_each_bound_and_default() {
        for key in BudgetKey::ALL {
            let rule = key.rule();
            assert_eq!(key.as_str().parse(), Ok(key));
            assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
            assert!((rule.least..=rule.most).contains(&rule.default), "{key}");
            for value in [rule.least, rule.default, rule.most] {
                assert_eq!(key.parse(&key.show(value)), Ok(value), "{key}");
            }
        }
        assert_eq!("hook-memory".parse::<BudgetKey>(), Err(UnknownBudget));
    }

    #[test]
    fn values_have_their_units() {
        let memory = BudgetKey::HookMemoryLimit;
        for (text, value) in
            [("1G", 1 << 30), ("64M", 64 << 20), ("1536K", 1536 << 10), ("2097152B", 2 << 20)]
        {
            assert_eq!(memory.parse(text), Ok(value), "{text}");
        }
        assert_eq!(memory.show(1536 << 10), "1536K");
        assert_eq!(BudgetKey::HookTimeout.parse("1m30s"), Ok(90));
        assert_eq!(BudgetKey::HookTimeout.show(90), "90s");
        assert_eq!(BudgetKey::HookTmpLimit.parse("0"), Ok(0));
        for (key, texts) in [
            (
                memory,
                vec!["", "256", "0", "M", "-1M", "+1M", "1.5G", "1T", "2G", "1023K", "99999999999G", "1é"],
            ),
            (BudgetKey::HookTimeout, vec!["", "0", "5", "-5m", "25h", "5d"]),
            (BudgetKey::HookCallLimit, vec!["", "999", "1k", "-1", "100000001"]),
        ] {
            for text in texts {
                assert!(key.parse(text).is_err(), "{key} {text:?}");
            }
        }
    }

    #[test]
    fn a_value_that_cannot_be_is_told_what_can() {
        let error = BudgetKey::HookMemoryLimit.parse("2G").unwrap_err().to_string();
        assert_eq!(error, "hook-memory-limit expected a size from 1M to 1G, got \"2G\"");
        let error = BudgetKey::ActionTimeout.parse("0s").unwrap_err().to_string();
        assert_eq!(error, "action-timeout expected a duration from 1s to 24h, got \"0s\"");
    }

    #[test]
    fn limits_on_workloads_are_apart_from_those_on_hooks() {
        let set = |key: BudgetKey| (key, key.default_value());
        let all = BudgetSettings(BudgetKey::ALL.map(set).into());
        let (hooks, workloads) = all.clone().split();
        assert_eq!(workloads.0.len(), 3);
        assert!(workloads.0.keys().all(|key| key.as_str().starts_with("workload-")));
        assert!(hooks.0.keys().all(|key| !key.is_of_workloads()));
        assert_eq!(hooks.or(&workloads), all);
        assert_eq!(BudgetKey::WorkloadCpuLimit.parse("250"), Ok(250));
        let error = BudgetKey::WorkloadMemoryLimit.parse("1M").unwrap_err().to_string();
        assert_eq!(error, "workload-memory-limit expected a size from 16M to 1024G, got \"1M\"");
    }

    #[test]
    fn the_nearest_setting_counts() {
        let (cpu, wall) = (BudgetKey::HookCpuBudget, BudgetKey::HookTimeout);
        let mut model = BudgetSettings::default();
        model.set(cpu, "1m").unwrap();
        model.set(wall, "2m").unwrap();
        let mut application = BudgetSettings::default();
        application.set(cpu, "5s").unwrap();
        let both = application.or(&model);
        assert_eq!((both.value(cpu), both.value(wall)), (5, 120));
        assert_eq!(both.value(BudgetKey::ActionTimeout), 3600);
        application.reset(cpu);
        assert_eq!(application.or(&model).value(cpu), 60);
    }
}
