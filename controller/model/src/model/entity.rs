//! Models.

use periapt_host_api::{
    ModelName, ModelUuid, Timestamp, UserName,
    constraints::{AgentConstraints, KeptConstraints},
    network::Spaces,
    settings::ModelSettings,
    ssh_key::SshKey,
    status::Life,
    storage::StorageEnd,
    usage::Usage,
};
use serde::{Deserialize, Serialize};

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Model {
    /// For ever.
    pub uuid: ModelUuid,
    /// Unique among its owner's models.
    pub name: ModelName,
    /// Who made it.
    pub owner: UserName,
    /// Alive or dying.
    pub life: Life,
    /// What of its configuration is set; the rest is its controller's. Stored under the name that it had when all of it
    /// was stored.
    #[serde(rename = "config", default, skip_serializing_if = "ModelSettings::is_empty")]
    pub settings: ModelSettings,
    /// On which agents units are placed of applications that do not say it themselves.
    #[serde(default, skip_serializing_if = "AgentConstraints::is_empty")]
    pub constraints: AgentConstraints,
    /// Constraints that no sandbox can meet: shown, and of no effect.
    #[serde(default, skip_serializing_if = "KeptConstraints::is_empty")]
    pub kept_constraints: KeptConstraints,
    /// What becomes of its storage when it is destroyed.
    #[serde(default)]
    pub storage_end: Option<StorageEnd>,
    /// What applications used that are gone.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub removed_usage: Usage,
    /// Which subnets are in which space.
    #[serde(default, skip_serializing_if = "Spaces::is_empty")]
    pub spaces: Spaces,
    /// Public keys of people, which have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_keys: Vec<SshKey>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when it is as alive as it is.
    pub life_since: Timestamp,
}
