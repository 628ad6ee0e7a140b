//! Commands that are about no existing model.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Force;
use crate::{ModelName, ModelUuid, cloud::Keep, storage::StorageEnd};

/// A command to the controller that is about no existing model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ControllerCommand {
    /// Makes a model.
    AddModel {
        /// Its name, unique among the owner's models.
        name: ModelName,
        /// What is set from the start, by key, as text.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        config: BTreeMap<String, String>,
    },
    /// Changes what holds in all models that do not set it themselves; values as text.
    SetModelDefaults {
        /// By key.
        #[serde(default)]
        set: BTreeMap<String, String>,
        /// Keys that go back to their defaults.
        #[serde(default)]
        reset: Vec<String>,
    },
    /// Destroys a model and all in it.
    DestroyModel {
        /// Which.
        model: ModelUuid,
        /// Do not wait for units to wind up.
        #[serde(default)]
        force: Option<Force>,
        /// What becomes of storage; to be said if there is any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        storage: Option<StorageEnd>,
    },
    /// Keeps or forgets what has no effect.
    Keep(Keep),
}

impl ControllerCommand {
    /// Makes a model that sets nothing.
    pub fn add_model(name: ModelName) -> Self {
        Self::AddModel { name, config: BTreeMap::new() }
    }
}
