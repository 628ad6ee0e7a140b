//! What a charm assumes of the model that it is deployed to (`assumes`), in Juju's grammar, and what of it is not here.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod features;
mod parse;
mod unmet;

pub use features::{
    FeatureName, FeatureNameError, FeatureVersion, SUPPORTED_FEATURES, SupportedFeature, VersionError,
};
pub use unmet::UnmetAssumptions;

/// All that a charm assumes: each of these must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Assumes(Vec<Assumption>);

/// One thing that a charm assumes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// The model has a feature.
    Feature(FeatureAssumption),
    /// At least one of these holds.
    AnyOf(Vec<Assumption>),
    /// Each of these holds.
    AllOf(Vec<Assumption>),
}

/// A feature that a charm assumes, such as `juju >= 3.6`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FeatureAssumption {
    /// The feature.
    pub name: FeatureName,
    /// Which of its versions; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionBound>,
}

/// Which versions of a feature will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VersionBound {
    /// This one and later ones.
    AtLeast(FeatureVersion),
    /// Earlier ones.
    Below(FeatureVersion),
}

impl VersionBound {
    /// Whether a version will do.
    pub fn admits(self, version: FeatureVersion) -> bool {
        match self {
            Self::AtLeast(least) => version >= least,
            Self::Below(bound) => version < bound,
        }
    }
}

impl fmt::Display for VersionBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(version) => write!(f, ">= {version}"),
            Self::Below(version) => write!(f, "< {version}"),
        }
    }
}

impl FromIterator<Assumption> for Assumes {
    fn from_iter<T: IntoIterator<Item = Assumption>>(assumptions: T) -> Self {
        Self(assumptions.into_iter().collect())
    }
}

impl Assumes {
    /// Whether the charm assumes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What of it does not hold in a model of this controller.
    ///
    /// # Errors
    /// [`UnmetAssumptions`], whose text names each feature that is missing and the version that is there.
    pub fn check(&self) -> Result<(), UnmetAssumptions> {
        UnmetAssumptions::among(&self.0)
    }
}

#[cfg(test)]
mod tests;
