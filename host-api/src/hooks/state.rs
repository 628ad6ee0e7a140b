//! What a charm stores for its unit (`hook-model.md` 5.11): kept by the controller, written in a hook's commit, gone
//! with the unit (L-8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnitName;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 256;

/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 65_536;

/// The most that one unit stores, in bytes of keys and values.
pub const MAX_BYTES: usize = 2 << 20;

/// The most keys that one unit stores. Each is an entry of the store and of its runner's mirror, with a price that
/// the bytes of a short key do not pay.
pub const MAX_KEYS: usize = 4_096;

/// One key of one unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StateKey {
    /// Whose.
    pub unit: UnitName,
    /// As the charm names it.
    pub key: String,
}
