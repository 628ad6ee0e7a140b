//! The controller's own entity.

use periapt_host_api::{Level, Timestamp, cloud::StoredClouds, settings::ModelSettings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Controller {
    /// The controller's id. It never changes.
    pub uuid: Uuid,
    /// The controller's name, given at its first start.
    pub name: String,
    /// The settings of all models that do not set them themselves.
    #[serde(default, skip_serializing_if = "ModelSettings::is_empty")]
    pub model_defaults: ModelSettings,
    /// The data that Juju's clients store in the controller.
    #[serde(default, skip_serializing_if = "StoredClouds::is_empty")]
    pub kept: StoredClouds,
    /// The level of what is stored.
    #[serde(default, skip_serializing_if = "Level::is_first")]
    pub level: Level,
    /// The time of the first start.
    pub created_at: Timestamp,
}
