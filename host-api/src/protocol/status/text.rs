//! A status as text, as `status` shows it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A status as text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StatusText {
    /// The word of the status.
    pub current: String,
    /// A message for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The time since which the status holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The release of Juju whose behaviour the agent has; only in agent statuses.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
}
