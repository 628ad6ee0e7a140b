//! Bundles: the applications and relations of a whole model in one YAML document, as Juju writes them.
//!
//! These functions are pure: they read a bundle and apply overlays ([`Bundle::read`]), compare a bundle with a model
//! ([`plan`](fn@plan)), and write a bundle from a model ([`export`](fn@export)). To deploy a bundle, the caller
//! executes the steps of its plan in order.

mod export;
mod plan;
mod raw;
mod read;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{
    export::export,
    plan::{BundleCharm, BundleModel, BundleStep, Existing, UnitPlace, plan},
};
use crate::{
    AgentName, ApplicationName, EndpointName, ResourceName, UnitName,
    command::{EndpointSelector, Exposure},
    constraints::Constraints,
    network::Bindings,
    offer::OfferUrl,
    storage::StorageDirectives,
};

/// The prefix of the digest of a charm, or of a resource's content, that the controller has.
pub const BY_DIGEST: &str = "sha256:";

/// The most applications, the most machines and the most relations of a bundle.
pub const MAX_ENTRIES: usize = 1_000;

/// The most units of one application in a bundle.
pub const MAX_UNITS: u32 = 10_000;

/// A bundle with its overlays applied.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// The applications, by name.
    pub applications: BTreeMap<ApplicationName, BundleApplication>,
    /// The keys of the bundle's machines, to which the `to` of applications refers.
    pub machines: Vec<String>,
    /// Consumed offers of other models, by the names that the bundle's relations use.
    pub saas: BTreeMap<ApplicationName, OfferUrl>,
    /// The relations in the order of the document, without duplicates.
    pub relations: Vec<(EndpointSelector, EndpointSelector)>,
}

/// An application of a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleApplication {
    /// The path of the charm, or `sha256:DIGEST` of a charm that the controller has.
    pub charm: String,
    /// The least number of units. `None` means 1, and 0 for a subordinate.
    pub units: Option<u32>,
    /// The places of the first units. The last place counts for all further units.
    pub to: Vec<BundlePlacement>,
    /// The settings as text.
    pub options: BTreeMap<String, String>,
    /// True if all networks may reach the application's open ports.
    pub expose: bool,
    /// Exposed endpoints, with the networks that may reach their ports. The empty name means all endpoints.
    pub exposed_endpoints: BTreeMap<String, Exposure>,
    /// Storage directives that differ from the charm's declaration.
    pub storage: StorageDirectives,
    /// The spaces that the endpoints are bound to.
    pub bindings: Bindings,
    /// Constraints on the agents of the units, and on the memory of hooks. `None` leaves the constraints as they are.
    pub constraints: Option<Constraints>,
    /// True if the application is trusted.
    pub trust: bool,
    /// The content of each resource: a path, or `sha256:DIGEST` of content that the controller has.
    pub resources: BTreeMap<ResourceName, String>,
    /// Offers of the application to other models: endpoints by offer name.
    pub offers: BTreeMap<ApplicationName, BTreeSet<EndpointName>>,
}

/// The place of a unit in a bundle.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundlePlacement {
    /// A machine of its own.
    New,
    /// A machine of the bundle, by its key.
    Machine(String),
    /// The machine of another unit.
    Unit(UnitName),
    /// The machines of another application's units, one unit on each.
    Application(ApplicationName),
    /// A new machine of this agent.
    Agent(AgentName),
}

/// A bundle that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// The bundle is no YAML, or has a wrong shape.
    #[error(transparent)]
    Yaml(#[from] crate::yaml::YamlError),
    /// The bundle breaks a rule. The text names the place.
    #[error("{0}")]
    Rule(String),
}

impl BundleError {
    /// Creates an error with the quoted parts of its text shortened.
    fn rule(text: impl AsRef<str>) -> Self {
        Self::Rule(crate::excerpt::of_message(text.as_ref()))
    }
}

#[cfg(test)]
mod tests;
