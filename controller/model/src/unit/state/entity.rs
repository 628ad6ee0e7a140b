//! What charms store.

use periapt_host_api::state::StateKey;
use serde::{Deserialize, Serialize};

/// What a charm stored under one key for its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StateEntry {
    /// Whose, and the charm's name for it.
    pub key: StateKey,
    /// As it was stored; may be empty.
    pub value: String,
}
