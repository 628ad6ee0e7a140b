//! What a charm declares of itself: `charmcraft.yaml`, or `metadata.yaml` with `config.yaml` and `actions.yaml`
//! (`hook-model.md` section 6).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EndpointName, InterfaceName, ResourceName, StorageName,
    excerpt::shortened,
    imports::Grant,
    relation::{Role, Scope},
    settings::{OptionValue, OptionValues, SettingError},
    truth,
};

mod actions;
pub mod assumes;
mod containers;
mod files;
mod parse;
mod resource;
mod storage;

pub use actions::{ActionMeta, ParametersError};
pub use assumes::Assumes;
pub use files::CharmFiles;
pub use parse::MetadataError;
pub use resource::{MAX_RESOURCES, ResourceKind, ResourceMeta};
pub use storage::{CountRange, StorageMeta};

/// A charm's metadata, read and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmMeta {
    /// The charm's own name; lower-case words joined by dashes.
    pub name: String,
    /// One line.
    pub summary: String,
    /// A paragraph or more.
    pub description: String,
    /// Whether its units live beside a principal's.
    pub subordinate: bool,
    /// All endpoints, over the three roles; the implicit `juju-info` is not among them.
    pub endpoints: BTreeMap<EndpointName, EndpointMeta>,
    /// Names that can be bound to a space and are no endpoints.
    #[serde(default)]
    pub extra_bindings: BTreeSet<String>,
    /// What is to outlive its hooks, on the agent's disk.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub storage: BTreeMap<StorageName, StorageMeta>,
    /// Files that an operator attaches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<ResourceName, ResourceMeta>,
    /// Options.
    pub options: BTreeMap<String, OptionMeta>,
    /// Actions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, ActionMeta>,
    /// What the model must have, for the charm to work in it.
    #[serde(default, skip_serializing_if = "Assumes::is_empty")]
    pub assumes: Assumes,
    /// Abilities beyond the sandbox that it asks for, as its component's imports say.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub grants: BTreeSet<Grant>,
}

/// An endpoint as declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EndpointMeta {
    /// Which of the three sections it stood in.
    pub role: Role,
    /// The interface.
    pub interface: InterfaceName,
    /// The most relations that it takes; none: no limit.
    pub limit: Option<u32>,
    /// Global unless declared otherwise.
    pub scope: Scope,
    /// A hint for tools.
    pub optional: bool,
    /// What happens among the members comes in batches, one hook each, and not member by member.
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
    /// Text; what an option without a type is.
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
    /// The name in metadata and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int => "int",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::Secret => "secret",
        }
    }

    /// Reads a value given as text (`hook-model.md` 6.2); none if the text is not of this type.
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

    /// Whether a value is of this type.
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

/// An option as declared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OptionMeta {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: OptionType,
    /// What it is for.
    pub description: String,
    /// The value where none is set; none: unset.
    pub default: Option<OptionValue>,
}

impl CharmMeta {
    /// Whether there is an endpoint or an extra binding of this name; every charm has `juju-info`.
    pub fn has_binding(&self, name: &str) -> bool {
        let endpoint = || self.endpoints.keys().any(|endpoint| endpoint.as_str() == name);
        name == crate::network::JUJU_INFO || self.extra_bindings.contains(name) || endpoint()
    }

    /// The endpoints of one role.
    pub fn endpoints_of(&self, role: Role) -> impl Iterator<Item = (&EndpointName, &EndpointMeta)> {
        self.endpoints.iter().filter(move |(_, meta)| meta.role == role)
    }

    /// An option by its name.
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

    /// Reads a setting that is given as text. None, if that is the same as not set: an empty text for an option
    /// without a default.
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

    /// What remains of settings under this charm: what it does not know, or knows by another type, is dropped (M-7).
    pub fn kept_settings(&self, settings: &OptionValues) -> OptionValues {
        let keeps = |(name, value): &(&String, &OptionValue)| {
            self.options.get(*name).is_some_and(|option| option.kind.admits(value))
        };
        settings.iter().filter(keeps).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// What a hook sees of an option: what was set, or its default.
    pub fn effective<'a>(
        &'a self,
        set: &'a BTreeMap<String, OptionValue>,
        key: &str,
    ) -> Option<&'a OptionValue> {
        let option = self.options.get(key)?;
        set.get(key).or(option.default.as_ref())
    }

    /// The same, for a unit that may not run the newest charm of its application: a value that is not of this charm's type
    /// for the option counts as not set.
    pub fn admitted<'a>(
        &'a self,
        set: &'a BTreeMap<String, OptionValue>,
        key: &str,
    ) -> Option<&'a OptionValue> {
        let option = self.options.get(key)?;
        set.get(key).filter(|value| option.kind.admits(value)).or(option.default.as_ref())
    }
}
