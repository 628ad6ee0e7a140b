//! Applications.

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, LeaderTerm, ResourceName, Timestamp,
    budget::BudgetSettings,
    command::Exposure,
    constraints::{AgentConstraints, KeptConstraints},
    network::Bindings,
    record::CharmRef,
    relation::Settings,
    settings::OptionValues,
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
    /// Its name, unique in the model.
    pub name: ApplicationName,
    /// Alive or dying.
    pub life: Life,
    /// The charm that its units should run.
    pub charm: CharmRef,
    /// A hook error does not hold the last refresh up (U-35).
    pub force_charm: bool,
    /// Its units live beside principals. The charm says so; a refresh cannot change it.
    pub subordinate: bool,
    /// What was set.
    pub config: OptionValues,
    /// What its hooks may use; for the rest the model's configuration says it.
    #[serde(default, skip_serializing_if = "BudgetSettings::is_empty")]
    pub budgets: BudgetSettings,
    /// What units used that are gone.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub removed_usage: Usage,
    /// Over the effective settings and the charm.
    pub config_hash: String,
    /// Rises with each change of the settings.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub settings_version: u64,
    /// On which agents its new units are placed; for the rest the model's constraints say it.
    #[serde(default, skip_serializing_if = "AgentConstraints::is_empty")]
    pub constraints: AgentConstraints,
    /// Constraints that no sandbox can meet: shown, and of no effect.
    #[serde(default, skip_serializing_if = "KeptConstraints::is_empty")]
    pub kept_constraints: KeptConstraints,
    /// What storage its units get, where it is other than the charm declares.
    #[serde(default)]
    pub storage: StorageDirectives,
    /// The content of its resources; those that are not named have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, AttachedResource>,
    /// Whether the operator trusts it.
    pub trust: bool,
    /// Over application-level keys.
    pub trust_hash: String,
    /// Seconds between its units' update-status hooks, in place of the model's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_status_interval: Option<u32>,
    /// Whether its ports are reachable from outside.
    pub exposed: bool,
    /// Whom the ports of which endpoints are for, the empty name being all endpoints; none: all ports are for everybody.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exposures: BTreeMap<String, Exposure>,
    /// The spaces that its endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// Who leads. Changes when the leadership changes hands, never by a renewal.
    pub leader: Option<Leader>,
    /// The last term that was given to anybody; kept while nobody leads.
    pub last_term: LeaderTerm,
    /// Leader settings.
    pub leader_settings: Settings,
    /// Rises with each change of the leader settings.
    pub leader_settings_version: u64,
    /// What its leader said; none: derived from the units (ST-2).
    pub status: Option<StatusInfo<WorkloadStatus>>,
    /// When its leader said the same again (ST-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_refreshed: Option<Timestamp>,
    /// The workload's version, as the charm says it.
    pub workload_version: String,
    /// When it was deployed.
    pub created_at: Timestamp,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
