//! What commands carry that is large.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Placement;
use crate::{
    ApplicationName, Digest, ResourceName, SpaceName, StorageId,
    constraints::Constraints,
    network::{Bindings, Subnet},
    resource::ResourceUpload,
    storage::StorageDirectives,
};

/// What `deploy` makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Deploy {
    /// An uploaded charm.
    pub charm: Digest,
    /// The application's name; none: the charm's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationName>,
    /// How many units; 0 for subordinates.
    pub units: u32,
    /// Settings as text, read by the options' types.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// Where the first units go.
    #[serde(default)]
    pub placement: Vec<Placement>,
    /// What storage each unit gets, where it is to be other than the charm declares.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// Detached storage that the unit takes over; only of one unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attach_storage: Vec<StorageId>,
    /// On which agents units are placed, and the memory of hooks.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// Whether the application is trusted.
    #[serde(default)]
    pub trust: bool,
    /// Also where the model has not what the charm assumes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The spaces that its endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// The first content of its resources; the others have none until it is attached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceUpload>,
}

/// What of an application is changed with its charm: all of it or nothing, before any unit sees the new one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct RefreshWith {
    /// Settings as text, read by the new charm's options.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// What storage units get from now on, where it is to be other than the new charm declares.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// Content of resources.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceUpload>,
    /// Trust the application from now on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust: bool,
}

impl RefreshWith {
    /// Whether the charm alone is changed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Whom the ports of an exposed endpoint are for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Exposure {
    /// Addresses; if there are neither these nor spaces: everybody.
    pub cidrs: BTreeSet<Subnet>,
    /// All in these spaces, as they change.
    pub spaces: BTreeSet<SpaceName>,
}
