//! A charm's `assumes`, in Juju's grammar: the features that it needs in its model. The check reports the features
//! that models lack here.

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

/// The assumptions of a charm. All of them must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Assumes(Vec<Assumption>);

/// One assumption.
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
    /// The bound on the feature's version. `None` means any version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionBound>,
}

/// A bound on a feature's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VersionBound {
    /// This version and later ones.
    AtLeast(FeatureVersion),
    /// Earlier versions.
    Below(FeatureVersion),
}

impl VersionBound {
    /// Returns true if a version is within the bound.
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
    /// Returns true if there are no assumptions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks that all assumptions hold in a model of this controller.
    ///
    /// # Errors
    /// [`UnmetAssumptions`], whose text names each missing feature and the present version.
    pub fn check(&self) -> Result<(), UnmetAssumptions> {
        UnmetAssumptions::among(&self.0)
    }
}

#[cfg(test)]
mod tests;
