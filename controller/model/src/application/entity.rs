//! The application entity.

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, Digest, LeaderTerm, ResourceName, Timestamp,
    budget::BudgetSettings,
    command::Exposure,
    constraints::{AgentConstraints, KeptConstraints},
    egress::EgressGrants,
    network::Bindings,
    record::CharmRef,
    relation::Settings,
    settings::{OptionValues, WorkloadCrash},
    status::{Life, StatusInfo, WorkloadStatus},
    storage::StorageDirectives,
    usage::Usage,
    view::Leader,
};
use serde::{Deserialize, Serialize};

use crate::entity::AttachedResource;

/// An application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Application {
    /// The application's name, unique in the model.
    pub name: ApplicationName,
    /// Alive or dying.
    pub life: Life,
    /// The charm that the units should run.
    pub charm: CharmRef,
    /// True if the last refresh was forced: units upgrade even in an error state (U-35).
    pub force_charm: bool,
    /// The charms that it had before, the newest last. The model keeps them, so that a refresh can go back to one. Only
    /// the last few stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_charms: Vec<Digest>,
    /// True if the units are subordinates. The charm declares it; a refresh cannot change it.
    pub subordinate: bool,
    /// The settings that were set explicitly.
    pub config: OptionValues,
    /// The resource limits of the application's hooks. Unset limits come from the model's configuration.
    #[serde(default, skip_serializing_if = "BudgetSettings::is_empty")]
    pub budgets: BudgetSettings,
    /// The total usage of removed units.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub removed_usage: Usage,
    /// A hash over the effective settings and the charm.
    pub config_hash: String,
    /// The version of the settings. It rises with each change.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settings_version: u64,
    /// The constraints that choose the agents for new units. Unset ones come from the model's constraints.
    #[serde(default, skip_serializing_if = "AgentConstraints::is_empty")]
    pub constraints: AgentConstraints,
    /// Constraints that have no meaning for sandboxes. They are shown, and have no effect.
    #[serde(default, skip_serializing_if = "KeptConstraints::is_empty")]
    pub kept_constraints: KeptConstraints,
    /// The storage directives of new units. Unset ones come from the charm.
    #[serde(default)]
    pub storage: StorageDirectives,
    /// The content of the resources. Resources without content are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, AttachedResource>,
    /// True if the operator trusts the application.
    pub trust: bool,
    /// A hash over the application-level keys.
    pub trust_hash: String,
    /// The seconds between update-status hooks, if they differ from the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status_interval: Option<u32>,
    /// The destinations outside of the model that its workloads may connect to, if they differ from the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_egress: Option<EgressGrants>,
    /// The treatment of hooks that were cut short beside workloads of their units.
    #[serde(default, skip_serializing_if = "WorkloadCrash::is_default")]
    pub workload_crash: WorkloadCrash,
    /// True if the ports are reachable from outside.
    pub exposed: bool,
    /// The exposure of each endpoint; the empty name stands for all endpoints. If the application is exposed and the
    /// map is empty, all ports are open to everyone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exposures: BTreeMap<String, Exposure>,
    /// The spaces that its endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// The leader. It changes when another unit becomes leader, not by a renewal.
    pub leader: Option<Leader>,
    /// The last leader term. It is kept while there is no leader.
    pub last_term: LeaderTerm,
    /// The leader settings.
    pub leader_settings: Settings,
    /// The version of the leader settings. It rises with each change.
    pub leader_settings_version: u64,
    /// The status that the leader set; none if it is derived from the units (ST-2).
    pub status: Option<StatusInfo<WorkloadStatus>>,
    /// The time at which the leader set the same status again (ST-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_refreshed: Option<Timestamp>,
    /// The workload's version, as the charm reports it.
    pub workload_version: String,
    /// The time of the deployment.
    pub created_at: Timestamp,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
