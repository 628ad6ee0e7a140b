//! A charm's metadata: `charmcraft.yaml`, or `metadata.yaml` with `config.yaml` and `actions.yaml` (`docs/hook-model.md`
//! section 6).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ContainerName, EndpointName, InterfaceName, ResourceName, StorageName,
    excerpt::shortened,
    imports::Grant,
    relation::{Role, Scope},
    settings::{OptionValue, OptionValues, SettingError},
    truth,
};

mod actions;
pub mod assumes;
mod containers;
mod error;
mod files;
mod parse;
mod resource;
mod storage;
mod workload;
mod workloads;

pub use actions::{ActionMeta, ParametersError};
pub use assumes::{Assumes, UnmetAssumptions};
pub use containers::{ContainerMeta, ContainerMount, MAX_CONTAINERS};
pub use error::MetadataError;
pub use files::CharmFiles;
pub use resource::{MAX_RESOURCES, ResourceKind, ResourceMeta};
pub use storage::{CountRange, StorageMeta};
pub use workload::WorkloadMeta;

/// A charm's metadata, parsed and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmMeta {
    /// The charm's own name; lower-case words joined by dashes.
    pub name: String,
    /// A summary of one line.
    pub summary: String,
    /// A paragraph or more.
    pub description: String,
    /// True if the charm's units run beside units of a principal application.
    pub subordinate: bool,
    /// All endpoints, over the three roles, without the implicit `juju-info`.
    pub endpoints: BTreeMap<EndpointName, EndpointMeta>,
    /// Names that can be bound to a space and are no endpoints.
    #[serde(default)]
    pub extra_bindings: BTreeSet<String>,
    /// Storage that outlives the hooks, on the agent's disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<StorageName, StorageMeta>,
    /// Files that an operator attaches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceMeta>,
    /// The workloads beside each unit: containers, and WebAssembly workloads of `x-periapt`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub containers: BTreeMap<ContainerName, ContainerMeta>,
    /// The charm's options.
    pub options: BTreeMap<String, OptionMeta>,
    /// The charm's actions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, ActionMeta>,
    /// The features that the charm needs in its model.
    #[serde(default, skip_serializing_if = "Assumes::is_empty")]
    pub assumes: Assumes,
    /// Abilities beyond the sandbox that the charm asks for, according to its component's imports.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub grants: BTreeSet<Grant>,
}

/// An endpoint as the charm declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EndpointMeta {
    /// The role: the metadata section that declares the endpoint.
    pub role: Role,
    /// The interface.
    pub interface: InterfaceName,
    /// The most relations of the endpoint. `None` means no limit.
    pub limit: Option<u32>,
    /// The scope; global by default.
    pub scope: Scope,
    /// A hint for tools.
    pub optional: bool,
    /// True if the charm wants relation events in batches, one hook each, and not one hook per member.
    #[serde(default, skip_serializing_if = "is_false")]
    pub batch: bool,
}

fn is_false(truth: &bool) -> bool {
    !truth
}

/// The types of options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OptionType {
    /// Text, which is the default type.
    #[default]
    String,
    /// A 64-bit integer.
    Int,
    /// A 64-bit float.
    Float,
    /// A truth value.
    Boolean,
    /// A secret's URI.
    Secret,
}

impl OptionType {
    /// Returns the type's name in metadata and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int => "int",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::Secret => "secret",
        }
    }

    /// Parses a value that is given as text (`docs/hook-model.md` 6.2). Returns `None` if the text is not of this type.
    pub fn parse(self, text: &str) -> Option<OptionValue> {
        match self {
            Self::String => Some(OptionValue::Text(text.to_owned())),
            Self::Int => text.parse().ok().map(OptionValue::Integer),
            Self::Float => {
                text.parse().ok().filter(|number: &f64| number.is_finite()).map(OptionValue::Number)
            }
            Self::Boolean => truth::parse(text).map(OptionValue::Boolean),
            Self::Secret => text.starts_with("secret:").then(|| OptionValue::Secret(text.to_owned())),
        }
    }

    /// Returns true if a value is of this type.
    pub fn admits(self, value: &OptionValue) -> bool {
        matches!(
            (self, value),
            (Self::String, OptionValue::Text(_))
                | (Self::Int, OptionValue::Integer(_))
                | (Self::Float, OptionValue::Number(_))
                | (Self::Boolean, OptionValue::Boolean(_))
                | (Self::Secret, OptionValue::Secret(_))
        )
    }
}

/// An option as the charm declares it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OptionMeta {
    /// The option's type.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// The description of the option.
    pub description: String,
    /// The default. `None` means that the option is unset by default.
    pub default: Option<OptionValue>,
}

impl CharmMeta {
    /// Returns true if there is an endpoint or an extra binding of this name. Every charm has `juju-info`.
    pub fn has_binding(&self, name: &str) -> bool {
        let endpoint = || self.endpoints.keys().any(|endpoint| endpoint.as_str() == name);
        name == crate::network::JUJU_INFO || self.extra_bindings.contains(name) || endpoint()
    }

    /// Returns the endpoints of one role.
    pub fn endpoints_of(&self, role: Role) -> impl Iterator<Item = (&EndpointName, &EndpointMeta)> {
        self.endpoints.iter().filter(move |(_, meta)| meta.role == role)
    }

    /// Returns an option by name.
    ///
    /// # Errors
    /// [`SettingError::Unknown`]
    pub fn option(&self, name: &str) -> Result<&OptionMeta, SettingError> {
        let unknown = || SettingError::Unknown {
            name: shortened(name).into_owned(),
            options: self.options.keys().cloned().collect(),
        };
        self.options.get(name).ok_or_else(unknown)
    }

    /// Parses a setting that is given as text. Returns `None` for an empty text if the option is a string without a
    /// default: the option is unset then.
    ///
    /// # Errors
    /// [`SettingError`]
    pub fn setting(&self, name: &str, text: &str) -> Result<Option<OptionValue>, SettingError> {
        let option = self.option(name)?;
        if text.is_empty() && option.kind == OptionType::String && option.default.is_none() {
            return Ok(None);
        }
        let wrong = || SettingError::WrongType {
            name: name.to_owned(),
            kind: option.kind.as_str(),
            text: shortened(text).into_owned(),
        };
        option.kind.parse(text).map(Some).ok_or_else(wrong)
    }

    /// Returns the settings that stay valid under this charm. Settings of unknown options, and of options with
    /// another type, are dropped (M-7).
    pub fn kept_settings(&self, settings: &OptionValues) -> OptionValues {
        let keeps = |(name, value): &(&String, &OptionValue)| {
            self.options.get(*name).is_some_and(|option| option.kind.admits(value))
        };
        settings.iter().filter(keeps).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the value of an option that a hook sees: the setting, or else the default.
    pub fn effective<'a>(
        &'a self,
        set: &'a BTreeMap<String, OptionValue>,
        key: &str,
    ) -> Option<&'a OptionValue> {
        let option = self.options.get(key)?;
        set.get(key).or(option.default.as_ref())
    }

    /// Returns the value of an option like [`CharmMeta::effective`], for a unit that may not run the newest charm of
    /// its application: a setting that is not of this charm's type counts as unset.
    pub fn admitted<'a>(
        &'a self,
        set: &'a BTreeMap<String, OptionValue>,
        key: &str,
    ) -> Option<&'a OptionValue> {
        let option = self.options.get(key)?;
        set.get(key).filter(|value| option.kind.admits(value)).or(option.default.as_ref())
    }
}
