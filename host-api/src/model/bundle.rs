//! Bundles: a whole model's applications and relations in one YAML document, as Juju writes them.
//!
//! Reading ([`Bundle::read`]), laying overlays over it, comparing it with a model ([`plan`](fn@plan)) and writing one from a
//! model ([`export`](fn@export)) are pure; who deploys a bundle does the steps of its plan, in order.

mod export;
mod plan;
mod raw;
mod read;

use std::collections::{BTreeMap, BTreeSet};

pub use self::{
    export::export,
    plan::{BundleCharm, Existing, Model, Step, UnitPlace, plan},
};
use crate::{
    AgentName, ApplicationName, EndpointName, ResourceName, UnitName,
    command::{EndpointSelector, Exposure},
    constraints::Constraints,
    network::Bindings,
    offer::OfferUrl,
    storage::StorageDirectives,
};

/// What stands before the digest of a charm, or of a resource's content, that the controller has.
pub const BY_DIGEST: &str = "sha256:";

/// The most applications, machines and relations that a bundle may name, each.
pub const MAX_ENTRIES: usize = 1_000;

/// The most units of one application that a bundle may ask for.
pub const MAX_UNITS: u32 = 10_000;

/// A bundle with its overlays laid over it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bundle {
    /// By name.
    pub applications: BTreeMap<ApplicationName, Application>,
    /// The keys of its machines, which its applications' `to` may name.
    pub machines: Vec<String>,
    /// Offers of other models that it consumes, by the names that its relations use.
    pub saas: BTreeMap<ApplicationName, OfferUrl>,
    /// In the order of the document, each once.
    pub relations: Vec<(EndpointSelector, EndpointSelector)>,
}

/// An application of a bundle.
#[derive(Debug, Clone, PartialEq)]
pub struct Application {
    /// Where its charm is: a path, or `sha256:DIGEST` of one that the controller has.
    pub charm: String,
    /// How many units it is to have at least; none given: 1, and 0 of a subordinate.
    pub units: Option<u32>,
    /// Where the first units go; the last place counts for all further units.
    pub to: Vec<Place>,
    /// Settings as text.
    pub options: BTreeMap<String, String>,
    /// Whether its ports are to be reachable from outside, for everybody.
    pub expose: bool,
    /// Endpoints whose ports are to be reachable from outside, and for whom; the empty name is all of them.
    pub exposed_endpoints: BTreeMap<String, Exposure>,
    /// Storage of each unit, where it is other than the charm declares.
    pub storage: StorageDirectives,
    /// The spaces that its endpoints are bound to.
    pub bindings: Bindings,
    /// On which agents its units are placed, and the memory of its hooks; none: nothing is said.
    pub constraints: Option<Constraints>,
    /// Whether it is to be trusted with what its charm asks for.
    pub trust: bool,
    /// Where the content of its resources is: a path, or `sha256:DIGEST` of one that the controller has.
    pub resources: BTreeMap<ResourceName, String>,
    /// What is offered of it to other models: endpoints by the offers' names.
    pub offers: BTreeMap<ApplicationName, BTreeSet<EndpointName>>,
}

/// Where a bundle puts a unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On a machine of its own.
    New,
    /// On a machine of the bundle, by its key.
    Machine(String),
    /// Beside another unit.
    Unit(UnitName),
    /// Beside the units of another application, one each.
    Application(ApplicationName),
    /// On a new machine of this agent.
    Agent(AgentName),
}

/// Why a bundle was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// Not YAML, or not of a bundle's shape.
    #[error(transparent)]
    Yaml(#[from] crate::yaml::YamlError),
    /// Well-formed, and against a rule; says where.
    #[error("{0}")]
    Rule(String),
}

impl BundleError {
    /// What the text quotes of the bundle may have any size.
    fn rule(text: impl AsRef<str>) -> Self {
        Self::Rule(crate::excerpt::of_message(text.as_ref()))
    }
}

#[cfg(test)]
mod tests;
