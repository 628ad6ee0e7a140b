//! The entity of stored state.

use periapt_host_api::state::StateKey;
use serde::{Deserialize, Serialize};

/// The value that a charm stored under one key for its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateEntry {
    /// The unit, and the charm's name for the entry.
    pub key: StateKey,
    /// The value; may be empty.
    pub value: String,
}
