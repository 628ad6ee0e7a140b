//! Clouds and credentials of Juju's clients. They are kept and shown, and have no effect: units run on agents.

use std::{collections::BTreeMap, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{CloudName, CredentialName};

/// The most bytes of one cloud's definition as JSON: an endpoint for each of some hundred regions.
pub const MAX_DEFINITION_BYTES: usize = 32 << 10;

/// A cloud definition that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloudError {
    /// The definition has no type, which Juju's clients need.
    #[error("a cloud needs a type, such as openstack")]
    NoType,
    /// A key whose value has another type than in Juju.
    #[error("{key} of a cloud must be {expected}")]
    Wrong {
        /// The key.
        key: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// The definition is too large. Holds its size in bytes.
    #[error("a cloud's definition has {0} bytes, at most 32768 are allowed")]
    Large(usize),
}

/// The definition of a cloud, by Juju's keys. Unknown keys are kept as they are.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
#[schemars(with = "Map<String, Value>")]
pub struct CloudDefinition(Map<String, Value>);

impl CloudDefinition {
    /// Checks that a definition has a type, and valid authentication types and regions, if any.
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
                // A region without a definition.
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

    /// Returns the cloud's type, such as `openstack`.
    pub fn kind(&self) -> &str {
        self.0.get("type").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the whole definition, by Juju's keys.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// Returns the size of the definition as JSON, in bytes.
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

/// The clouds and credentials that a controller keeps for Juju's clients. Of a credential it keeps the authentication
/// type and never the secret attributes, as nothing would use them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct StoredClouds {
    /// The definitions, by cloud name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub clouds: BTreeMap<CloudName, CloudDefinition>,
    /// The authentication type of each credential, such as `userpass`, by cloud and name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<CloudName, BTreeMap<CredentialName, String>>,
}

impl StoredClouds {
    /// Returns true if nothing is kept.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A change of the kept clouds and credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum CloudChange {
    /// Adds a cloud that is not kept yet.
    AddCloud {
        /// The cloud's name.
        name: CloudName,
        /// The cloud's definition.
        definition: CloudDefinition,
    },
    /// Replaces the definition of a cloud.
    UpdateCloud {
        /// The cloud's name.
        name: CloudName,
        /// The new definition.
        definition: CloudDefinition,
    },
    /// Removes a cloud and its credentials.
    RemoveCloud {
        /// The cloud's name.
        name: CloudName,
    },
    /// Adds a credential's name and authentication type, without its secret attributes.
    AddCredential {
        /// The cloud; it need not be kept.
        cloud: CloudName,
        /// The credential's name. A credential of this name is replaced.
        name: CredentialName,
        /// The authentication type, such as `userpass`.
        auth_type: String,
    },
    /// Removes a credential.
    RemoveCredential {
        /// The cloud.
        cloud: CloudName,
        /// The credential's name.
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
