//! Export of a model as a bundle.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::BundleModel;
use crate::{EndpointName, SpaceName, command::Exposure, network::Subnet, storage::StorageDirective};

/// A bundle in the form in which YAML writes it.
#[derive(Debug, Serialize)]
struct Exported<'a> {
    applications: BTreeMap<&'a str, ExportedApplication<'a>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    machines: BTreeMap<String, BTreeMap<String, Value>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    saas: BTreeMap<&'a str, ExportedSaas>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    relations: Vec<[String; 2]>,
}

#[derive(Debug, Serialize)]
struct ExportedSaas {
    url: String,
}

#[derive(Debug, Serialize)]
struct ExportedOffer<'a> {
    endpoints: Vec<&'a str>,
}

#[derive(Debug, Serialize)]
struct ExportedApplication<'a> {
    charm: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_units: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    to: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    options: BTreeMap<&'a str, Value>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bindings: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    constraints: String,
    #[serde(skip_serializing_if = "is_false")]
    expose: bool,
    #[serde(rename = "exposed-endpoints", skip_serializing_if = "BTreeMap::is_empty")]
    exposed_endpoints: BTreeMap<&'a str, ExportedExposure<'a>>,
    #[serde(skip_serializing_if = "is_false")]
    trust: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    offers: BTreeMap<&'a str, ExportedOffer<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ExportedExposure<'a> {
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    expose_to_cidrs: &'a BTreeSet<Subnet>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    expose_to_spaces: &'a BTreeSet<SpaceName>,
}

/// Writes a model as a bundle that creates the same model again. Charms and resources are named by digests, which the
/// same controller knows in all of its models.
pub fn export(model: &BundleModel) -> impl Serialize + '_ {
    let mut machines = BTreeSet::new();
    let mut applications = BTreeMap::new();
    for (name, application) in &model.applications {
        let to: Vec<_> = application.units.iter().filter_map(|(_, machine)| *machine).collect();
        machines.extend(to.iter().copied());
        let default = application.bindings.default.iter().map(|space| ("", space.as_str()));
        let bound = application.bindings.endpoints.iter();
        let bound = bound.map(|(name, space)| (name.as_str(), space.as_str()));
        // Without a restriction in either form, all networks reach all ports.
        let plain = BTreeMap::from([(String::new(), Exposure::default())]);
        let for_all = application.exposures.is_empty() || application.exposures == plain;
        let exposed = application.exposures.iter().filter(|_| application.exposed && !for_all);
        applications.insert(
            name.as_str(),
            ExportedApplication {
                charm: format!("{}{}", super::BY_DIGEST, application.charm),
                num_units: (!application.subordinate).then_some(application.units.len()),
                to: to.iter().map(ToString::to_string).collect(),
                options: application
                    .options
                    .iter()
                    .map(|(key, value)| (key.as_str(), value.to_json()))
                    .collect(),
                storage: application
                    .storage
                    .iter()
                    .filter(|(_, directive)| **directive != StorageDirective::default())
                    .map(|(name, directive)| (name.as_str(), directive.to_string()))
                    .collect(),
                bindings: default.chain(bound).collect(),
                constraints: application.constraints.to_string(),
                expose: application.exposed && for_all,
                exposed_endpoints: exposed
                    .map(|(endpoint, Exposure { cidrs, spaces })| {
                        let exported = ExportedExposure { expose_to_cidrs: cidrs, expose_to_spaces: spaces };
                        (endpoint.as_str(), exported)
                    })
                    .collect(),
                trust: application.trust,
                resources: application
                    .resources
                    .iter()
                    .map(|(resource, digest)| (resource.as_str(), format!("{}{digest}", super::BY_DIGEST)))
                    .collect(),
                offers: application
                    .offers
                    .iter()
                    .map(|(name, endpoints)| {
                        let endpoints = endpoints.iter().map(EndpointName::as_str).collect();
                        (name.as_str(), ExportedOffer { endpoints })
                    })
                    .collect(),
            },
        );
    }
    let relations = model
        .relations
        .iter()
        .map(|ends| ends.each_ref().map(|(name, endpoint)| format!("{name}:{endpoint}")));
    Exported {
        relations: relations.collect(),
        machines: machines.into_iter().map(|machine| (machine.to_string(), BTreeMap::new())).collect(),
        saas: model
            .saas
            .iter()
            .map(|(name, url)| (name.as_str(), ExportedSaas { url: url.to_string() }))
            .collect(),
        applications,
    }
}

fn is_false(truth: &bool) -> bool {
    !truth
}
