//! A model's configuration: the settings that it stores, and the values that the engine reads (`docs/hook-model.md` 7.9).

use std::{collections::BTreeMap, fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::KeptSettings;
use crate::{
    budget::{BudgetKey, BudgetSettings},
    egress::EgressGrants,
    network::Subnet,
    timing::FAILOVER_AFTER,
};

/// The machines whose firewalls let in the open ports of exposed units (`docs/hook-model.md` 7.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FirewallMode {
    /// The machine of the unit.
    #[default]
    Instance,
    /// All machines of the model (F-2).
    Global,
    /// No machine: the operator manages firewalls by other means.
    None,
}

impl FirewallMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Instance, Self::Global, Self::None];

    /// Returns the mode as operators write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Global => "global",
            Self::None => "none",
        }
    }
}

impl fmt::Display for FirewallMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no firewall mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such firewall mode")]
pub struct UnknownFirewallMode;

impl FromStr for FirewallMode {
    type Err = UnknownFirewallMode;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == text).ok_or(UnknownFirewallMode)
    }
}

/// The time without a connection after which the units of an agent go to another agent (`docs/hook-model.md` P-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailoverAfter {
    /// Units stay until an operator acts.
    Never,
    /// The seconds, at least those of [`FAILOVER_AFTER`].
    Seconds(u32),
}

impl FailoverAfter {
    /// Returns the time in milliseconds, if units go to another agent at all.
    pub fn milliseconds(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::Seconds(seconds) => Some(u64::from(seconds) * 1_000),
        }
    }
}

impl Default for FailoverAfter {
    fn default() -> Self {
        Self::Seconds(u32::try_from(FAILOVER_AFTER.as_secs()).unwrap_or(u32::MAX))
    }
}

/// The most of something that the workloads of a model may have together. Administrators of the controller set it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadQuota {
    /// Any number.
    #[default]
    Unlimited,
    /// So many.
    Most(u32),
}

impl WorkloadQuota {
    /// Returns true if there is no quota.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::Unlimited
    }

    /// Returns the most, if there is a quota.
    pub fn most(self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Most(most) => Some(most.into()),
        }
    }
}

/// The effective configuration of a model: each value comes from the model, or else its controller, or else the
/// default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct ModelConfig {
    /// The time without a connection after which the units of an agent go to another agent.
    pub agent_failover_after: FailoverAfter,
    /// Seconds between update-status hooks, before jitter; 0 means never.
    pub update_status_hook_interval: u32,
    /// True if the agent retries failed hooks automatically.
    pub automatically_retry_hooks: bool,
    /// The source subnets of the units' traffic. Empty means each unit's own ingress address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub egress_subnets: Vec<Subnet>,
    /// The machines whose firewalls let in opened ports.
    pub firewall_mode: FirewallMode,
    /// The destinations outside of the model that workloads may connect to, of applications that set none themselves.
    #[serde(skip_serializing_if = "EgressGrants::is_empty")]
    pub workload_egress: EgressGrants,
    /// The seconds for which ended tasks and their results are kept.
    pub max_action_results_age: u32,
    /// The MiB of parameters, messages and results that are kept over all ended tasks. The oldest are deleted first.
    pub max_action_results_size: u32,
    /// The seconds for which status history is kept.
    pub max_status_history_age: u32,
    /// The MiB of status history that are kept.
    pub max_status_history_size: u32,
    /// The most MiB of a storage instance that a charm may ask for by itself. Larger instances need an operator's
    /// directive.
    pub storage_default_max_size: u32,
    /// The most MiB of memory that the limits of all workloads may sum up to.
    #[serde(skip_serializing_if = "WorkloadQuota::is_unlimited")]
    pub workload_memory_quota: WorkloadQuota,
    /// The most containers and WebAssembly workloads.
    #[serde(skip_serializing_if = "WorkloadQuota::is_unlimited")]
    pub workload_quota: WorkloadQuota,
    /// Budgets of applications that set none themselves.
    #[serde(skip_serializing_if = "BudgetSettings::is_empty")]
    pub budgets: BudgetSettings,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            agent_failover_after: FailoverAfter::default(),
            update_status_hook_interval: 300,
            automatically_retry_hooks: true,
            egress_subnets: Vec::new(),
            firewall_mode: FirewallMode::default(),
            workload_egress: EgressGrants::default(),
            max_action_results_age: 336 * 3600,
            max_action_results_size: 5 << 10,
            max_status_history_age: 336 * 3600,
            max_status_history_size: 5 << 10,
            storage_default_max_size: 16 << 10,
            workload_memory_quota: WorkloadQuota::Unlimited,
            workload_quota: WorkloadQuota::Unlimited,
            budgets: BudgetSettings::default(),
        }
    }
}

/// The configuration that is set in one model, or for all models of a controller. Unset values are inherited.
///
/// The fields are stored as those of a [`ModelConfig`]: a model that was stored as a whole one sets all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[expect(missing_docs, reason = "the fields of `ModelConfig`, but for the last")]
pub struct ModelSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_failover_after: Option<FailoverAfter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update_status_hook_interval: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automatically_retry_hooks: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_subnets: Option<Vec<Subnet>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firewall_mode: Option<FirewallMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_egress: Option<EgressGrants>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_action_results_age: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_action_results_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_status_history_age: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_status_history_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_default_max_size: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_memory_quota: Option<WorkloadQuota>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_quota: Option<WorkloadQuota>,
    #[serde(skip_serializing_if = "BudgetSettings::is_empty")]
    pub budgets: BudgetSettings,
    /// Settings that are kept and have no effect. [`ModelConfig`] has no such field.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: KeptSettings,
}

impl ModelSettings {
    /// Returns true if nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the effective configuration of a model with these settings: its own value, or else the controller's,
    /// or else the default.
    pub fn config(&self, controller: &Self) -> ModelConfig {
        let (own, outer, default) = (self.clone(), controller.clone(), ModelConfig::default());
        ModelConfig {
            agent_failover_after: own
                .agent_failover_after
                .or(outer.agent_failover_after)
                .unwrap_or(default.agent_failover_after),
            update_status_hook_interval: own
                .update_status_hook_interval
                .or(outer.update_status_hook_interval)
                .unwrap_or(default.update_status_hook_interval),
            automatically_retry_hooks: own
                .automatically_retry_hooks
                .or(outer.automatically_retry_hooks)
                .unwrap_or(default.automatically_retry_hooks),
            egress_subnets: own.egress_subnets.or(outer.egress_subnets).unwrap_or(default.egress_subnets),
            firewall_mode: own.firewall_mode.or(outer.firewall_mode).unwrap_or(default.firewall_mode),
            workload_egress: own.workload_egress.or(outer.workload_egress).unwrap_or(default.workload_egress),
            max_action_results_age: own
                .max_action_results_age
                .or(outer.max_action_results_age)
                .unwrap_or(default.max_action_results_age),
            max_action_results_size: own
                .max_action_results_size
                .or(outer.max_action_results_size)
                .unwrap_or(default.max_action_results_size),
            max_status_history_age: own
                .max_status_history_age
                .or(outer.max_status_history_age)
                .unwrap_or(default.max_status_history_age),
            max_status_history_size: own
                .max_status_history_size
                .or(outer.max_status_history_size)
                .unwrap_or(default.max_status_history_size),
            storage_default_max_size: own
                .storage_default_max_size
                .or(outer.storage_default_max_size)
                .unwrap_or(default.storage_default_max_size),
            workload_memory_quota: own
                .workload_memory_quota
                .or(outer.workload_memory_quota)
                .unwrap_or(default.workload_memory_quota),
            workload_quota: own.workload_quota.or(outer.workload_quota).unwrap_or(default.workload_quota),
            budgets: own.budgets.or(&outer.budgets),
        }
    }
}

/// Sets all values of a configuration.
impl From<ModelConfig> for ModelSettings {
    fn from(config: ModelConfig) -> Self {
        Self {
            agent_failover_after: Some(config.agent_failover_after),
            update_status_hook_interval: Some(config.update_status_hook_interval),
            automatically_retry_hooks: Some(config.automatically_retry_hooks),
            egress_subnets: Some(config.egress_subnets),
            firewall_mode: Some(config.firewall_mode),
            workload_egress: Some(config.workload_egress),
            max_action_results_age: Some(config.max_action_results_age),
            max_action_results_size: Some(config.max_action_results_size),
            max_status_history_age: Some(config.max_status_history_age),
            max_status_history_size: Some(config.max_status_history_size),
            storage_default_max_size: Some(config.storage_default_max_size),
            workload_memory_quota: Some(config.workload_memory_quota),
            workload_quota: Some(config.workload_quota),
            budgets: BudgetSettings(BudgetKey::ALL.map(|key| (key, config.budgets.value(key))).into()),
            kept: KeptSettings::default(),
        }
    }
}
