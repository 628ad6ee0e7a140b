//! The document of a bundle. All fields are optional, so that an overlay is a document, too.

use std::collections::BTreeMap;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;

/// One document. It accepts keys of Juju's that have no effect here, and refuses unknown keys by name.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(super) struct Document {
    #[serde(alias = "services")]
    pub(super) applications: Option<BTreeMap<String, Option<Application>>>,
    pub(super) machines: Option<BTreeMap<String, Option<IgnoredAny>>>,
    pub(super) relations: Option<Vec<Value>>,
    pub(super) saas: Option<BTreeMap<String, Saas>>,
    #[serde(rename = "bundle")]
    _kind: Option<IgnoredAny>,
    #[serde(rename = "name")]
    _name: Option<IgnoredAny>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(rename = "summary")]
    _summary: Option<IgnoredAny>,
    #[serde(rename = "docs")]
    _docs: Option<IgnoredAny>,
    #[serde(rename = "website")]
    _website: Option<IgnoredAny>,
    #[serde(rename = "source")]
    _source: Option<IgnoredAny>,
    #[serde(rename = "issues")]
    _issues: Option<IgnoredAny>,
    #[serde(rename = "type")]
    _type: Option<IgnoredAny>,
    #[serde(rename = "tags")]
    _tags: Option<IgnoredAny>,
    #[serde(rename = "series")]
    _series: Option<IgnoredAny>,
    #[serde(rename = "default-base")]
    _default_base: Option<IgnoredAny>,
    /// A place for YAML anchors.
    #[serde(rename = "variables")]
    _variables: Option<IgnoredAny>,
}

/// An application of one document.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(super) struct Application {
    pub(super) charm: Option<String>,
    #[serde(rename = "num_units", alias = "num-units", alias = "scale")]
    pub(super) units: Option<u32>,
    pub(super) to: Option<Value>,
    #[serde(alias = "config")]
    pub(super) options: Option<BTreeMap<String, Value>>,
    pub(super) expose: Option<bool>,
    pub(super) exposed_endpoints: Option<BTreeMap<String, Option<Exposed>>>,
    pub(super) storage: Option<BTreeMap<String, Value>>,
    pub(super) bindings: Option<BTreeMap<String, String>>,
    pub(super) constraints: Option<String>,
    pub(super) trust: Option<bool>,
    pub(super) resources: Option<BTreeMap<String, Value>>,
    pub(super) offers: Option<BTreeMap<String, Offer>>,
    #[serde(rename = "annotations")]
    _annotations: Option<IgnoredAny>,
    #[serde(rename = "base")]
    _base: Option<IgnoredAny>,
    #[serde(rename = "series")]
    _series: Option<IgnoredAny>,
    #[serde(rename = "channel")]
    _channel: Option<IgnoredAny>,
    #[serde(rename = "revision")]
    _revision: Option<IgnoredAny>,
}

/// The networks that may reach an endpoint's ports.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(super) struct Exposed {
    pub(super) expose_to_cidrs: Option<Vec<String>>,
    pub(super) expose_to_spaces: Option<Vec<String>>,
}

/// A consumed offer of one document.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(super) struct Saas {
    pub(super) url: Option<String>,
}

/// An offer of one document.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(super) struct Offer {
    pub(super) endpoints: Vec<String>,
    #[serde(rename = "acl")]
    _acl: Option<IgnoredAny>,
}

impl Document {
    /// Applies an overlay: its values win, key by key in options, storage and resources. An application without a
    /// body is deleted together with its relations. Relations are added.
    pub(super) fn overlay(&mut self, over: Self) {
        let applications = self.applications.get_or_insert_default();
        for (name, body) in over.applications.unwrap_or_default() {
            match body {
                None => {
                    applications.remove(&name);
                    let gone = |end: &Value| end.as_str().is_some_and(|end| is_of(end, &name));
                    let names = |ends: &Value| ends.as_array().is_some_and(|ends| ends.iter().any(gone));
                    self.relations.get_or_insert_default().retain(|ends| !names(ends));
                }
                Some(body) => match applications.entry(name).or_default() {
                    Some(below) => below.overlay(body),
                    empty => *empty = Some(body),
                },
            }
        }
        // Machines are replaced as a whole: their keys belong to the places that name them.
        self.machines = over.machines.or(self.machines.take());
        self.relations.get_or_insert_default().extend(over.relations.unwrap_or_default());
        self.saas.get_or_insert_default().extend(over.saas.unwrap_or_default());
    }
}

impl Application {
    fn overlay(&mut self, over: Self) {
        self.charm = over.charm.or(self.charm.take());
        self.units = over.units.or(self.units);
        self.to = over.to.or(self.to.take());
        // The overlay's form of exposure replaces the other: an overlay that narrows exposure must not leave all
        // exposed.
        match (over.expose, over.exposed_endpoints) {
            (Some(expose), endpoints) => {
                self.expose = Some(expose);
                self.exposed_endpoints = endpoints;
            }
            (None, Some(endpoints)) => {
                self.expose = None;
                self.exposed_endpoints.get_or_insert_default().extend(endpoints);
            }
            (None, None) => {}
        }
        self.storage.get_or_insert_default().extend(over.storage.unwrap_or_default());
        self.bindings.get_or_insert_default().extend(over.bindings.unwrap_or_default());
        self.constraints = over.constraints.or(self.constraints.take());
        self.trust = over.trust.or(self.trust);
        self.offers.get_or_insert_default().extend(over.offers.unwrap_or_default());
        self.options.get_or_insert_default().extend(over.options.unwrap_or_default());
        self.resources.get_or_insert_default().extend(over.resources.unwrap_or_default());
    }
}

fn is_of(end: &str, application: &str) -> bool {
    end.split_once(':').map_or(end, |(name, _)| name) == application
}
