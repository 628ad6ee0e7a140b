//! The controller itself.

use periapt_host_api::Timestamp;
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
    /// When it was made.
    pub created_at: Timestamp,
}
