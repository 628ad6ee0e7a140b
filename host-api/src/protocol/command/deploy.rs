//! The large payloads of commands: `deploy`, `refresh` and `expose`.

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

/// The parameters of `deploy`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Deploy {
    /// The digest of an uploaded charm.
    pub charm: Digest,
    /// The application's name; none means the charm's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationName>,
    /// The number of units; 0 for subordinates.
    pub units: u32,
    /// Settings as text, parsed by the types of the options.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
    /// The placements of the first units.
    #[serde(default)]
    pub placement: Vec<Placement>,
    /// The storage of each unit, in place of the charm's defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// Detached storage to attach to the new unit; allowed for a single unit only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attach_storage: Vec<StorageId>,
    /// The agents for units, and the memory of hooks.
    #[serde(default, skip_serializing_if = "Constraints::is_empty")]
    pub constraints: Constraints,
    /// True if the operator trusts the application.
    #[serde(default)]
    pub trust: bool,
    /// True to deploy even if the model lacks features that the charm assumes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// The spaces that the application's endpoints are bound to.
    #[serde(default, skip_serializing_if = "Bindings::is_empty")]
    pub bindings: Bindings,
    /// The first content of the charm's resources; other resources stay empty until an operator attaches content.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceUpload>,
}

impl Deploy {
    /// Returns the deployment of so many units under the charm's name, with nothing else given.
    pub fn of(charm: Digest, units: u32) -> Self {
        Self {
            charm,
            application: None,
            units,
            config: BTreeMap::new(),
            placement: Vec::new(),
            storage: StorageDirectives::new(),
            attach_storage: Vec::new(),
            constraints: Constraints::default(),
            trust: false,
            force: false,
            bindings: Bindings::default(),
            resources: BTreeMap::new(),
        }
    }
}

/// The changes of an application that `refresh` makes together with the charm: all or none, before any unit sees the
/// new charm.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct RefreshWith {
    /// Settings as text, parsed by the new charm's options.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// The storage of units from now on, in place of the new charm's defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: StorageDirectives,
    /// New content of resources.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceUpload>,
    /// True to trust the application from now on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trust: bool,
}

impl RefreshWith {
    /// Returns true if only the charm changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The sources that may reach the ports of an exposed endpoint; empty means all sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Exposure {
    /// Source addresses.
    pub cidrs: BTreeSet<Subnet>,
    /// Spaces whose subnets, as they are at each moment, are sources.
    pub spaces: BTreeSet<SpaceName>,
}
