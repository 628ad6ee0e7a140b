//! The model entity.

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
use uuid::Uuid;

use crate::migration::entity::Migration;

/// A model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Model {
    /// The model's id. It never changes.
    pub uuid: ModelUuid,
    /// The name, unique among the owner's models.
    pub name: ModelName,
    /// The user who created the model.
    pub owner: UserName,
    /// Alive or dying.
    pub life: Life,
    /// The settings that the model sets itself; the rest come from the controller. The stored name is older: it once
    /// held the whole configuration.
    #[serde(rename = "config", default, skip_serializing_if = "ModelSettings::is_empty")]
    pub settings: ModelSettings,
    /// The constraints that choose agents for the units of applications without their own.
    #[serde(default, skip_serializing_if = "AgentConstraints::is_empty")]
    pub constraints: AgentConstraints,
    /// Constraints that have no meaning for sandboxes. They are shown, and have no effect.
    #[serde(default, skip_serializing_if = "KeptConstraints::is_empty")]
    pub kept_constraints: KeptConstraints,
    /// The treatment of storage when the model is destroyed: destroy or release.
    #[serde(default)]
    pub storage_end: Option<StorageEnd>,
    /// The total usage of removed applications.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub removed_usage: Usage,
    /// The spaces, with their subnets.
    #[serde(default, skip_serializing_if = "Spaces::is_empty")]
    pub spaces: Spaces,
    /// The public SSH keys of people. They have no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ssh_keys: Vec<SshKey>,
    /// The state of the model's migration to another controller, or from one; none if there is and was none, and none
    /// below level 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration: Option<Migration>,
    /// The migration by which the model came here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived: Option<Uuid>,
    /// The time of the creation.
    pub created_at: Timestamp,
    /// The time of the last change of life.
    pub life_since: Timestamp,
}
