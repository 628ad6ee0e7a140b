//! Clouds and credentials as Juju's clients define them: kept and shown, and of no effect. Units run on agents.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CloudName, CredentialName};

/// The most that one cloud's definition may take as JSON, in bytes: an endpoint for each of some hundred regions.
pub const MAX_DEFINITION_BYTES: usize = 32 << 10;

/// A text that defines no cloud.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// Juju needs it to know whom to ask.
    #[error("a cloud needs a type, such as openstack")]
    NoType,
    /// A key whose value is of another kind than Juju's.
    #[error("{key} of a cloud must be {expected}")]
    Wrong {
        /// Which key.
        key: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// It takes too much.
    #[error("a cloud's definition has {0} bytes, at most 32768 are allowed")]
    Large(usize),
}

/// What a cloud is said to be, by Juju's keys; those that nobody here knows are kept as they are.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
#[schemars(with = "Map<String, Value>")]
pub struct CloudDefinition(Map<String, Value>);

impl CloudDefinition {
    /// A definition that has a type, and authentication types and regions of the right form, if any.
    ///
    /// # Errors
    /// [`CloudError`]
    pub fn new(mut definition: Map<String, Value>) -> Result<Self, CloudError> {
        let wrong = |key, expected| Err(CloudError::Wrong { key, expected });
        match definition.get("type") {
            Some(Value::String(kind)) if !kind.is_empty() => {}
            None | Some(Value::Null | Value::String(_)) => return Err(CloudError::NoType),
            Some(_) => return wrong("type", "a text"),
        }
        if let Some(types) = definition.get("auth-types") {
            match types.as_array() {
                Some(types) if types.iter().all(Value::is_string) => {}
                _ => return wrong("auth-types", "a list of texts"),
            }
        }
        if let Some(regions) = definition.get_mut("regions") {
            let Some(regions) = regions.as_object_mut() else { return wrong("regions", "a mapping by name") };
            for region in regions.values_mut() {
                // A region of which there is nothing to say.
                if region.is_null() {
                    *region = Value::Object(Map::new());
                }
                if !region.is_object() {
                    return wrong("regions", "a mapping by name, with a mapping for each");
                }
            }
        }
        let definition = Self(definition);
        match definition.bytes() {
            bytes if bytes > MAX_DEFINITION_BYTES => Err(CloudError::Large(bytes)),
            _ => Ok(definition),
        }
    }

    /// Its type, such as `openstack`.
    pub fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// All of it, by Juju's keys.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// How many bytes it takes as JSON.
    pub fn bytes(&self) -> usize {
        crate::size::of_json(&self.0)
    }
}

impl fmt::Debug for CloudDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<Map<String, Value>> for CloudDefinition {
    type Error = CloudError;

    fn try_from(definition: Map<String, Value>) -> Result<Self, CloudError> {
        Self::new(definition)
    }
}

impl From<CloudDefinition> for Map<String, Value> {
    fn from(definition: CloudDefinition) -> Self {
        definition.0
    }
}

/// What a controller keeps for Juju's clients. Of credentials it keeps how they authenticate and never with what: there
/// is nobody to whom a secret would have to be shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kept {
    /// By name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clouds: BTreeMap<CloudName, CloudDefinition>,
    /// The authentication type of each credential, such as `userpass`, by cloud and name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<CloudName, BTreeMap<CredentialName, String>>,
}

impl Kept {
    /// Whether nobody gave anything.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What is kept and forgotten of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Keep {
    /// Keeps the definition of a cloud that is not kept yet.
    AddCloud {
        /// Its name.
        name: CloudName,
        /// What it is said to be.
        definition: CloudDefinition,
    },
    /// Keeps another definition of a cloud.
    UpdateCloud {
        /// Its name.
        name: CloudName,
        /// What it is said to be now.
        definition: CloudDefinition,
    },
    /// Forgets a cloud, and the credentials for it.
    RemoveCloud {
        /// Its name.
        name: CloudName,
    },
    /// Keeps that there is a credential for a cloud, and how it authenticates; never with what.
    AddCredential {
        /// The cloud, whether or not it is kept.
        cloud: CloudName,
        /// Its name; one of this name is replaced.
        name: CredentialName,
        /// How it authenticates, such as `userpass`.
        auth_type: String,
    },
    /// Forgets a credential.
    RemoveCredential {
        /// The cloud.
        cloud: CloudName,
        /// Its name.
        name: CredentialName,
    },
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<CloudDefinition, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn a_definition_is_given_back_as_it_was_given() {
        let given = json!({
            "type": "openstack", "auth-types": ["userpass"], "endpoint": "https://e/v3", "x-own": {"a": [1]},
            "regions": {"one": {"endpoint": "https://one"}, "two": null},
        });
        let definition = read(given.clone()).unwrap();
        assert_eq!(definition.kind(), "openstack");
        let mut expected = given;
        expected["regions"]["two"] = json!({});
        assert_eq!(serde_json::to_value(&definition).unwrap(), expected);
    }

    #[test]
    fn what_defines_no_cloud_is_told() {
        for (wrong, text) in [
            (json!({}), "a cloud needs a type"),
            (json!({"type": ""}), "a cloud needs a type"),
            (json!({"type": 1}), "type of a cloud must be a text"),
            (json!({"type": "x", "auth-types": "userpass"}), "auth-types of a cloud must be a list of texts"),
            (json!({"type": "x", "regions": ["one"]}), "regions of a cloud must be a mapping"),
            (json!({"type": "x", "regions": {"one": "https://one"}}), "regions of a cloud must be a mapping"),
            (json!({"type": "x", "endpoint": "e".repeat(MAX_DEFINITION_BYTES)}), "a cloud's definition has"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.starts_with(text), "{error}");
        }
    }
}
