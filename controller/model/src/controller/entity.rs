//! The controller itself.

use periapt_host_api::{Timestamp, cloud::Kept, settings::ModelSettings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Controller {
    /// For ever.
    pub uuid: Uuid,
    /// As its makers call it.
    pub name: String,
    /// What holds in all models that do not set it themselves.
    #[serde(default, skip_serializing_if = "ModelSettings::is_empty")]
    pub model_defaults: ModelSettings,
    /// What Juju's clients gave it to keep.
    #[serde(default, skip_serializing_if = "Kept::is_empty")]
    pub kept: Kept,
    /// When it was made.
    pub created_at: Timestamp,
}
