//! Features of a model, by name and version.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{JUJU_VERSION, excerpt::shortened};

/// The longest name of a feature. Juju has none of more than 20 characters.
const MAX_NAME: usize = 64;

/// A feature that each model of a controller has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SupportedFeature {
    /// The name in `assumes`.
    pub name: &'static str,
    /// A description for people.
    pub description: &'static str,
    /// The feature's version.
    pub version: &'static str,
}

/// All supported features. There is no `k8s-api`: units run in sandboxes, without a Kubernetes cluster.
pub const SUPPORTED_FEATURES: [SupportedFeature; 1] = [SupportedFeature {
    name: "juju",
    description: "the version of Juju used by the model",
    version: JUJU_VERSION,
}];

/// The name of a feature: lower-case letters, digits and inner dashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FeatureName(String);

/// A text that is no name of a feature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid feature {0:?}: a name of at most {MAX_NAME} lower-case letters, digits and inner dashes is expected"
)]
pub struct FeatureNameError(String);

impl FeatureName {
    /// Parses a name.
    ///
    /// # Errors
    /// [`FeatureNameError`]
    pub fn new(text: &str) -> Result<Self, FeatureNameError> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(inner)
            && !text.ends_with('-')
            && text.len() <= MAX_NAME;
        match is_name {
            true => Ok(Self(text.to_owned())),
            false => Err(FeatureNameError(shortened(text).into_owned())),
        }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the feature of this name, if models have it.
    pub fn supported(&self) -> Option<SupportedFeature> {
        SUPPORTED_FEATURES.into_iter().find(|feature| feature.name == self.0)
    }
}

impl fmt::Display for FeatureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for FeatureName {
    type Error = FeatureNameError;

    fn try_from(text: String) -> Result<Self, FeatureNameError> {
        Self::new(&text)
    }
}

impl From<FeatureName> for String {
    fn from(name: FeatureName) -> Self {
        name.0
    }
}

/// A version of a feature. Missing numbers are zeros: `3` is `3.0.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FeatureVersion([u32; 3]);

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid version {0:?}: one to three numbers with dots between them are expected, such as 3.6 or 3.6.1"
)]
pub struct VersionError(String);

impl FromStr for FeatureVersion {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let wrong = || VersionError(shortened(text).into_owned());
        let mut numbers = [0; 3];
        let mut places = numbers.iter_mut();
        for part in text.split('.') {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let number = part.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
            *places.next().ok_or_else(wrong)? = number;
        }
        Ok(Self(numbers))
    }
}

impl fmt::Display for FeatureVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.0;
        write!(f, "{major}.{minor}.{patch}")
    }
}

impl TryFrom<String> for FeatureVersion {
    type Error = VersionError;

    fn try_from(text: String) -> Result<Self, VersionError> {
        text.parse()
    }
}

impl From<FeatureVersion> for String {
    fn from(version: FeatureVersion) -> Self {
        version.to_string()
    }
}
