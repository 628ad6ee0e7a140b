//! Keys of model configuration. Operators set them in a model, or for all models of a controller.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FailoverAfter, KeptKey, ModelConfig, ModelSettings, WorkloadQuota};
use crate::{
    budget::{BudgetKey, in_units},
    duration,
    egress::{EgressGrants, WORKLOAD_EGRESS},
    network::Subnet,
    storage::parse_size,
    timing::FAILOVER_AFTER,
    truth,
};

/// The most egress subnets. They go into the bags of every unit.
pub const MAX_SUBNETS: usize = 32;

/// The value of `agent-failover-after` with which units stay.
const NEVER: &str = "never";

/// The value of a quota that there is none.
const UNLIMITED: &str = "unlimited";

/// The longest time until units go to another agent, in seconds.
const LONGEST_FAILOVER: u64 = 720 * 3600;

/// A key of a model's configuration, as `model-config` and `model-defaults` take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum SettingKey {
    /// The time without a connection after which the units of an agent go to another agent, or never.
    AgentFailoverAfter,
    /// `true` or `false`: retry failed hooks automatically.
    AutomaticallyRetryHooks,
    /// The source subnets of the units' traffic.
    EgressSubnets,
    /// The machines whose firewalls let in opened ports.
    FirewallMode,
    /// The time for which ended tasks are kept.
    MaxActionResultsAge,
    /// The total size of the ended tasks that are kept.
    MaxActionResultsSize,
    /// The time for which status history is kept.
    MaxStatusHistoryAge,
    /// The total size of the status history that is kept.
    MaxStatusHistorySize,
    /// The most storage that a charm may ask for by itself.
    StorageDefaultMaxSize,
    /// The time between update-status hooks.
    UpdateStatusHookInterval,
    /// The most memory of all workloads together.
    WorkloadMemoryQuota,
    /// The most containers and WebAssembly workloads.
    WorkloadQuota,
    /// The destinations outside of the model that workloads may connect to.
    WorkloadEgress,
    /// A hook budget.
    Budget(BudgetKey),
    /// A model setting of Juju's that is kept and has no effect.
    Kept(KeptKey),
}

/// A text that is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown model configuration key {key:?}; known are {}", known())]
pub struct UnknownSetting {
    key: String,
}

/// A value that a key cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key} expected {expected}, got {text:?}{detail}")]
pub struct SettingValueError {
    key: SettingKey,
    expected: String,
    text: String,
    /// The part of the text that is wrong, with the reason; empty if it is the whole.
    detail: String,
}

impl SettingKey {
    /// Returns the keys of every listing, by name: all keys with an effect, and `logging-config`.
    pub fn all() -> Vec<Self> {
        let mut all = vec![
            Self::AgentFailoverAfter,
            Self::AutomaticallyRetryHooks,
            Self::EgressSubnets,
            Self::FirewallMode,
            Self::MaxActionResultsAge,
            Self::MaxActionResultsSize,
            Self::MaxStatusHistoryAge,
            Self::MaxStatusHistorySize,
            Self::StorageDefaultMaxSize,
            Self::UpdateStatusHookInterval,
            Self::WorkloadMemoryQuota,
            Self::WorkloadQuota,
            Self::WorkloadEgress,
            Self::Kept(KeptKey::LoggingConfig),
        ];
        all.extend(BudgetKey::ALL.map(Self::Budget));
        all.sort_by_key(|key| key.as_str());
        all
    }

    /// Returns the key as operators write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentFailoverAfter => "agent-failover-after",
            Self::AutomaticallyRetryHooks => "automatically-retry-hooks",
            Self::EgressSubnets => "egress-subnets",
            Self::FirewallMode => "firewall-mode",
            Self::MaxActionResultsAge => "max-action-results-age",
            Self::MaxActionResultsSize => "max-action-results-size",
            Self::MaxStatusHistoryAge => "max-status-history-age",
            Self::MaxStatusHistorySize => "max-status-history-size",
            Self::StorageDefaultMaxSize => "storage-default-max-size",
            Self::UpdateStatusHookInterval => "update-status-hook-interval",
            Self::WorkloadMemoryQuota => "workload-memory-quota",
            Self::WorkloadQuota => "workload-quota",
            Self::WorkloadEgress => WORKLOAD_EGRESS,
            Self::Budget(key) => key.as_str(),
            Self::Kept(key) => key.as_str(),
        }
    }

    /// Returns true for a key that administrators of the controller alone set, in models, too.
    pub fn is_of_administrators(self) -> bool {
        matches!(self, Self::WorkloadMemoryQuota | Self::WorkloadQuota)
    }

    /// Returns the default as JSON.
    pub fn default_value(self) -> Value {
        match self {
            Self::Kept(key) => key.default_value(),
            key => ModelSettings::from(ModelConfig::default()).show(key).unwrap_or_default(),
        }
    }

    /// Describes the values that are allowed.
    fn expected(self) -> String {
        let expected = match self {
            Self::AgentFailoverAfter => "never or a duration from 90s to 720h, such as 5m",
            Self::AutomaticallyRetryHooks => "true or false",
            Self::EgressSubnets => "subnets with commas between them, such as 192.0.2.0/24,2001:db8::/64",
            Self::FirewallMode => "instance, global or none",
            Self::MaxActionResultsAge | Self::MaxStatusHistoryAge => {
                "a duration of at least 1h, such as 336h"
            }
            Self::MaxActionResultsSize | Self::MaxStatusHistorySize | Self::StorageDefaultMaxSize => {
                "a size in M, G or T, such as 5G"
            }
            Self::UpdateStatusHookInterval => "0 (off) or a duration, such as 10s, 5m or 1h30m",
            Self::WorkloadMemoryQuota => "unlimited or a size in M, G or T, such as 64G",
            Self::WorkloadQuota => "unlimited or a number, such as 20",
            Self::WorkloadEgress => {
                "destinations with commas between them, such as example.com:443,10.1.0.0/16"
            }
            Self::Kept(key) => return key.expected(),
            Self::Budget(key) => return key.expected(),
        };
        expected.to_owned()
    }
}

impl ModelSettings {
    /// Returns true if a quota of workloads is set.
    pub fn has_quota(&self) -> bool {
        self.workload_memory_quota.is_some() || self.workload_quota.is_some()
    }

    /// Sets a key from text. `None` unsets it, so that it is inherited.
    ///
    /// # Errors
    /// Says which values are allowed. An error changes nothing.
    pub fn set(&mut self, key: SettingKey, text: Option<&str>) -> Result<(), SettingValueError> {
        let mut detail = String::new();
        let fits = match key {
            SettingKey::AgentFailoverAfter => put(&mut self.agent_failover_after, text, failover),
            SettingKey::AutomaticallyRetryHooks => {
                put(&mut self.automatically_retry_hooks, text, truth::parse)
            }
            SettingKey::EgressSubnets => put(&mut self.egress_subnets, text, subnets),
            SettingKey::FirewallMode => put(&mut self.firewall_mode, text, |text| text.parse().ok()),
            SettingKey::MaxActionResultsAge => put(&mut self.max_action_results_age, text, age),
            SettingKey::MaxActionResultsSize => put(&mut self.max_action_results_size, text, mebibytes),
            SettingKey::MaxStatusHistoryAge => put(&mut self.max_status_history_age, text, age),
            SettingKey::MaxStatusHistorySize => put(&mut self.max_status_history_size, text, mebibytes),
            SettingKey::StorageDefaultMaxSize => put(&mut self.storage_default_max_size, text, mebibytes),
            SettingKey::UpdateStatusHookInterval => {
                put(&mut self.update_status_hook_interval, text, interval)
            }
            SettingKey::WorkloadMemoryQuota => {
                put(&mut self.workload_memory_quota, text, |text| quota(text, mebibytes))
            }
            SettingKey::WorkloadQuota => {
                put(&mut self.workload_quota, text, |text| quota(text, |text| text.parse().ok()))
            }
            SettingKey::WorkloadEgress => put(&mut self.workload_egress, text, |text| {
                let grants = text.parse::<EgressGrants>();
                grants.inspect_err(|error| detail = format!(": {error}")).ok()
            }),
            SettingKey::Budget(key) => match text {
                Some(text) => self.budgets.set(key, text).is_ok(),
                None => {
                    self.budgets.reset(key);
                    true
                }
            },
            SettingKey::Kept(key) => match text.map(|text| key.read(text)) {
                Some(Some(text)) => {
                    self.kept.insert(key, text);
                    true
                }
                Some(None) => false,
                None => {
                    self.kept.remove(&key);
                    true
                }
            },
        };
        if fits {
            return Ok(());
        }
        let text = text.unwrap_or_default().chars().take(200).collect();
        Err(SettingValueError { key, expected: key.expected(), text, detail })
    }

    /// Returns the value of a key as JSON, in a form that [`ModelSettings::set`] reads as text.
    pub fn show(&self, key: SettingKey) -> Option<Value> {
        let time =
            |seconds: Option<u32>| Some(in_units(seconds?.into(), &[(3600, "h"), (60, "m")], "s").into());
        let size =
            |size: Option<u32>| Some(in_units(size?.into(), &[(1 << 20, "T"), (1 << 10, "G")], "M").into());
        match key {
            SettingKey::AgentFailoverAfter => match self.agent_failover_after? {
                FailoverAfter::Never => Some(NEVER.into()),
                FailoverAfter::Seconds(seconds) => time(Some(seconds)),
            },
            SettingKey::AutomaticallyRetryHooks => self.automatically_retry_hooks.map(Value::from),
            SettingKey::EgressSubnets => {
                let subnets = self.egress_subnets.as_ref()?.iter().map(ToString::to_string);
                Some(subnets.collect::<Vec<_>>().join(",").into())
            }
            SettingKey::FirewallMode => self.firewall_mode.map(|mode| mode.as_str().into()),
            SettingKey::MaxActionResultsAge => time(self.max_action_results_age),
            SettingKey::MaxActionResultsSize => size(self.max_action_results_size),
            SettingKey::MaxStatusHistoryAge => time(self.max_status_history_age),
            SettingKey::MaxStatusHistorySize => size(self.max_status_history_size),
            SettingKey::StorageDefaultMaxSize => size(self.storage_default_max_size),
            SettingKey::UpdateStatusHookInterval => time(self.update_status_hook_interval),
            SettingKey::WorkloadMemoryQuota => match self.workload_memory_quota? {
                WorkloadQuota::Unlimited => Some(UNLIMITED.into()),
                WorkloadQuota::Most(most) => size(Some(most)),
            },
            SettingKey::WorkloadQuota => Some(match self.workload_quota? {
                WorkloadQuota::Unlimited => UNLIMITED.into(),
                WorkloadQuota::Most(most) => most.into(),
            }),
            SettingKey::WorkloadEgress => {
                self.workload_egress.as_ref().map(|grants| grants.to_string().into())
            }
            SettingKey::Budget(key) => self.budgets.get(key).map(|value| key.show(value).into()),
            SettingKey::Kept(key) => self.kept.get(&key).map(|text| key.show(text)),
        }
    }
}

/// Parses a text into a field, or unsets the field. Returns false, and keeps the field, for a text that is no value.
fn put<T>(place: &mut Option<T>, text: Option<&str>, read: impl FnOnce(&str) -> Option<T>) -> bool {
    let value = text.map(read);
    let fits = !matches!(value, Some(None));
    if fits {
        *place = value.flatten();
    }
    fits
}

/// Parses the time until units go to another agent, or `never`. A shorter time than the shortest could let two units lead;
/// the longest is 30 days.
fn failover(text: &str) -> Option<FailoverAfter> {
    if text == NEVER {
        return Some(FailoverAfter::Never);
    }
    let seconds = duration::whole_seconds(text)?;
    let fits = (FAILOVER_AFTER.as_secs()..=LONGEST_FAILOVER).contains(&u64::from(seconds));
    fits.then_some(FailoverAfter::Seconds(seconds))
}

/// Parses an age of at least an hour. A shorter one would prune entries that operators still read.
fn age(text: &str) -> Option<u32> {
    duration::whole_seconds(text).filter(|seconds| *seconds >= 3600)
}

/// Parses any duration, as Juju does: suites for Juju fast-forward with `10s`. A fraction of a second is rounded up,
/// as timers count whole seconds.
fn interval(text: &str) -> Option<u32> {
    u32::try_from(duration::parse(text).ok()?.as_nanos().div_ceil(1_000_000_000)).ok()
}

/// Parses subnets with commas between them; an empty text has none.
fn subnets(text: &str) -> Option<Vec<Subnet>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let subnets: Vec<Subnet> = parts.map(str::parse).collect::<Result<_, _>>().ok()?;
    (subnets.len() <= MAX_SUBNETS).then_some(subnets)
}

/// Parses a size in mebibytes that fits into 32 bits.
fn mebibytes(text: &str) -> Option<u32> {
    u32::try_from(parse_size(text).ok()?).ok()
}

/// Parses a quota, or `unlimited`.
fn quota(text: &str, read: impl FnOnce(&str) -> Option<u32>) -> Option<WorkloadQuota> {
    match text {
        UNLIMITED => Some(WorkloadQuota::Unlimited),
        text => read(text).map(WorkloadQuota::Most),
    }
}

fn known() -> String {
    SettingKey::all().into_iter().map(SettingKey::as_str).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for SettingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SettingKey {
    type Err = UnknownSetting;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownSetting { key: text.chars().take(200).collect() };
        let kept = KeptKey::ALL.into_iter().map(Self::Kept);
        Self::all().into_iter().chain(kept).find(|key| key.as_str() == text).ok_or_else(unknown)
    }
}

impl TryFrom<String> for SettingKey {
    type Error = UnknownSetting;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SettingKey> for String {
    fn from(key: SettingKey) -> Self {
        key.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::FirewallMode;

    fn check(key: &str, text: &str, expected: Result<&str, &str>) {
        let key: SettingKey = key.parse().unwrap();
        let mut settings = ModelSettings::default();
        let shown = settings.set(key, Some(text)).map(|()| match settings.show(key).unwrap() {
            Value::String(text) => text,
            other => other.to_string(),
        });
        match (shown, expected) {
            (Ok(shown), Ok(expected)) => assert_eq!(shown, expected, "{key} {text}"),
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected, "{key} {text}"),
            (shown, _) => panic!("{key} {text}: {shown:?}"),
        }
    }

    #[test]
    fn values_are_read_and_shown_so_that_they_can_be_read_again() {
        for (key, text, shown) in [
            ("agent-failover-after", "never", "never"),
            ("agent-failover-after", "90s", "90s"),
            ("agent-failover-after", "720h", "720h"),
            ("automatically-retry-hooks", "F", "false"),
            ("egress-subnets", "", ""),
            ("egress-subnets", "192.0.2.0/24, 2001:db8::/64", "192.0.2.0/24,2001:db8::/64"),
            ("firewall-mode", "global", "global"),
            ("firewall-mode", "none", "none"),
            ("hook-memory-limit", "1024M", "1G"),
            ("max-action-results-age", "1h30m", "90m"),
            ("max-status-history-size", "2048G", "2T"),
            ("max-status-history-size", "1500M", "1500M"),
            ("workload-memory-quota", "unlimited", "unlimited"),
            ("workload-memory-quota", "2048M", "2G"),
            ("workload-quota", "20", "20"),
            ("workload-quota", "unlimited", "unlimited"),
            ("workload-egress", "", ""),
            (
                "workload-egress",
                "Example.com.:443, *.example.com,10.0.0.5:5432,[2001:db8::/32]:443",
                "example.com:443,*.example.com,10.0.0.5:5432,[2001:db8::/32]:443",
            ),
            ("update-status-hook-interval", "0", "0"),
            ("update-status-hook-interval", "90s", "90s"),
            ("update-status-hook-interval", "1h", "1h"),
            ("update-status-hook-interval", "10s", "10s"),
            ("update-status-hook-interval", "1m30s", "90s"),
            ("update-status-hook-interval", "48h", "48h"),
            ("update-status-hook-interval", "0s", "0"),
            ("update-status-hook-interval", "500ms", "1s"),
            ("update-status-hook-interval", "0.1ms", "1s"),
            ("logging-config", "<root>=INFO;unit=DEBUG", "<root>=INFO;unit=DEBUG"),
            ("test-mode", "True", "true"),
            ("num-provision-workers", "4", "4"),
            ("image-stream", "daily", "daily"),
        ] {
            check(key, text, Ok(shown));
            check(key, shown, Ok(shown));
        }
    }

    #[test]
    fn a_value_that_cannot_be_is_told_what_can() {
        for (key, text, error) in [
            ("agent-failover-after", "89s", "expected never or a duration from 90s to 720h, such as 5m"),
            ("agent-failover-after", "721h", "expected never or a duration from 90s to 720h, such as 5m"),
            ("agent-failover-after", "0", "expected never or a duration from 90s to 720h, such as 5m"),
            ("automatically-retry-hooks", "maybe", "expected true or false"),
            (
                "egress-subnets",
                "10.0.0.7/24",
                "expected subnets with commas between them, such as 192.0.2.0/24,2001:db8::/64",
            ),
            ("firewall-mode", "Global", "expected instance, global or none"),
            ("hook-timeout", "5", "expected a duration from 1s to 24h"),
            ("max-action-results-age", "59m", "expected a duration of at least 1h, such as 336h"),
            ("max-status-history-size", "0M", "expected a size in M, G or T, such as 5G"),
            ("max-status-history-size", "9999999T", "expected a size in M, G or T, such as 5G"),
            ("update-status-hook-interval", "5", "expected 0 (off) or a duration, such as 10s, 5m or 1h30m"),
            (
                "update-status-hook-interval",
                "-5s",
                "expected 0 (off) or a duration, such as 10s, 5m or 1h30m",
            ),
            (
                "update-status-hook-interval",
                "99999999999h",
                "expected 0 (off) or a duration, such as 10s, 5m or 1h30m",
            ),
            ("test-mode", "maybe", "expected true or false"),
            ("num-provision-workers", "many", "expected a number"),
        ] {
            check(key, text, Err(&format!("{key} {error}, got {text:?}")));
        }
        let many = vec!["192.0.2.0/24"; MAX_SUBNETS + 1].join(",");
        let mut settings = ModelSettings::default();
        assert!(settings.set(SettingKey::EgressSubnets, Some(&many)).is_err() && settings.is_empty());
        let metadata =
            settings.set(SettingKey::WorkloadEgress, Some("example.com,169.254.169.254")).unwrap_err();
        assert_eq!(
            metadata.to_string(),
            "workload-egress expected destinations with commas between them, such as example.com:443,10.1.0.0/16, got \
             \"example.com,169.254.169.254\": invalid destination \"169.254.169.254\": link-local addresses and metadata \
             services are never reached, whatever is granted"
        );
        let unknown = "colour".parse::<SettingKey>().unwrap_err().to_string();
        assert!(
            unknown.starts_with("unknown model configuration key \"colour\"; known are action-timeout, ")
        );
    }

    #[test]
    fn the_nearest_setting_counts_and_the_default_where_there_is_none() {
        let set = |pairs: &[(&str, &str)]| {
            let mut settings = ModelSettings::default();
            for (key, text) in pairs {
                settings.set(key.parse().unwrap(), Some(text)).unwrap();
            }
            settings
        };
        let controller =
            set(&[("hook-timeout", "1m"), ("firewall-mode", "none"), ("max-action-results-age", "2h")]);
        let model = set(&[("hook-timeout", "2m"), ("egress-subnets", "192.0.2.0/24")]);
        let config = model.config(&controller);
        assert_eq!(config.budgets.value(BudgetKey::HookTimeout), 120);
        assert_eq!((config.firewall_mode, config.max_action_results_age), (FirewallMode::None, 7200));
        assert_eq!(config.egress_subnets, ["192.0.2.0/24".parse().unwrap()]);
    }

    #[test]
    fn each_key_is_set_shown_read_and_let_go() {
        let nothing = ModelSettings::default();
        assert_eq!(nothing.config(&nothing), ModelConfig::default());
        let all = ModelSettings::from(ModelConfig::default());
        let mut one_by_one = ModelSettings::default();
        for key in SettingKey::all() {
            assert_eq!(serde_json::to_value(key).unwrap(), key.as_str());
            // A configuration holds no settings without effect.
            let Some(shown) = all.show(key) else {
                assert!(matches!(key, SettingKey::Kept(_)), "{key}");
                continue;
            };
            let text = match shown {
                Value::String(text) => text,
                other => other.to_string(),
            };
            one_by_one.set(key, Some(&text)).unwrap();
            let mut without = all.clone();
            without.set(key, None).unwrap();
            assert_eq!(without.show(key), None, "{key} is inherited again");
        }
        assert_eq!(one_by_one, all);
    }

    #[test]
    fn a_whole_configuration_is_read_as_settings() {
        let config = ModelConfig { firewall_mode: FirewallMode::Global, ..ModelConfig::default() };
        let stored = serde_json::to_value(&config).unwrap();
        let settings: ModelSettings = serde_json::from_value(stored).unwrap();
        assert_eq!(settings.config(&ModelSettings::default()), config);
    }
}
