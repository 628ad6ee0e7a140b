//! The stored state of a unit (`docs/hook-model.md` 5.11): the controller keeps it, a hook's commit writes it, and it goes
//! with the unit (L-8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::UnitName;

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 256;

/// The longest value, in bytes.
pub const MAX_VALUE_BYTES: usize = 65_536;

/// The most bytes of keys and values that one unit stores.
pub const MAX_BYTES: usize = 2 << 20;

/// The most keys that one unit stores. Each key is an entry of the store and of its runner's mirror, and costs more
/// than the bytes of a short key.
pub const MAX_KEYS: usize = 4_096;

/// A key in the stored state of one unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StateKey {
    /// The unit.
    pub unit: UnitName,
    /// The key as the charm names it.
    pub key: String,
}
