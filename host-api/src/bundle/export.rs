//! A bundle of what a model has.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::Model;
use crate::EndpointName;

/// A bundle, to be written as YAML.
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
    #[serde(skip_serializing_if = "is_false")]
    expose: bool,
    #[serde(skip_serializing_if = "is_false")]
    trust: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    resources: BTreeMap<&'a str, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    offers: BTreeMap<&'a str, ExportedOffer<'a>>,
}

/// Writes a model as a bundle that makes the same again. Charms and resources are named by their digests, which the same
/// controller knows in all of its models.
pub fn export(model: &Model) -> impl Serialize + '_ {
    let mut machines = BTreeSet::new();
    let mut applications = BTreeMap::new();
    for (name, application) in &model.applications {
        let to: Vec<_> = application.units.iter().filter_map(|(_, machine)| *machine).collect();
        machines.extend(to.iter().copied());
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
                    .map(|(name, directive)| (name.as_str(), directive.to_string()))
                    .collect(),
                expose: application.exposed,
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
