//! The conversion of documents to a bundle.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::Value;

use super::{
    Bundle, BundleApplication, BundleError, BundlePlacement, MAX_ENTRIES, MAX_UNITS,
    raw::{self, Document},
};
use crate::{
    ApplicationName, EndpointName, ResourceName, SpaceName, StorageName, UnitName,
    command::{EndpointSelector, Exposure},
    constraints::Constraints,
    network::{Bindings, SubnetError},
    offer::OfferUrlError,
    rule::BrokenRule,
    storage::{DirectiveError, StorageDirectives},
    yaml,
};

impl Bundle {
    /// Reads a bundle. Further documents in the same text are overlays.
    ///
    /// `include` returns the replacement of an option's value that begins with `include-file://` or
    /// `include-base64://`. It gets the whole value, and returns `None` to keep the value.
    ///
    /// # Errors
    /// [`BundleError`]: with line and column for a syntax error, with names for a broken rule.
    pub fn read<'a, E: fmt::Display>(
        text: &str,
        overlays: impl IntoIterator<Item = &'a str>,
        mut include: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Self, BundleError> {
        let mut documents = yaml::parse_all::<Document>(text)?.into_iter();
        let mut whole = documents.next().unwrap_or_default();
        documents.for_each(|over| whole.overlay(over));
        for overlay in overlays {
            yaml::parse_all::<Document>(overlay)?.into_iter().for_each(|over| whole.overlay(over));
        }
        Self::from_document(whole, &mut include)
    }

    fn from_document<E: fmt::Display>(
        document: Document,
        include: &mut impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Self, BundleError> {
        let machines: Vec<_> = document.machines.unwrap_or_default().into_keys().collect();
        let mut bundle = Self { machines, ..Self::default() };
        let applications = document.applications.unwrap_or_default();
        if applications.is_empty() {
            return Err(BundleError::rule("the bundle has no applications"));
        }
        for (name, body) in applications {
            let at = format!("application {name}");
            let body = body.ok_or_else(|| BundleError::rule(format!("{at}: it has no charm")))?;
            let name =
                ApplicationName::new(name.as_str()).map_err(|error| BundleError::rule(error.to_string()))?;
            bundle.applications.insert(name, application(&at, body, &bundle.machines, include)?);
        }
        for (name, body) in document.saas.unwrap_or_default() {
            bundle.consume(&name, body)?;
        }
        for ends in document.relations.unwrap_or_default() {
            bundle.relate(&ends)?;
        }
        let Self { applications, machines, saas, relations } = &bundle;
        let sizes = [applications.len(), machines.len(), saas.len(), relations.len()];
        if sizes.into_iter().any(|size| size > MAX_ENTRIES) {
            return Err(BundleError::rule(format!(
                "a bundle has at most {MAX_ENTRIES} applications, machines, saas and relations each"
            )));
        }
        bundle.check_places()?;
        Ok(bundle)
    }

    fn consume(&mut self, name: &str, body: raw::Saas) -> Result<(), BundleError> {
        let refused = |what: String| BundleError::rule(format!("saas {name}: {what}"));
        let url = body.url.ok_or_else(|| refused("it has no url".to_owned()))?;
        let url = url.parse().map_err(|error: OfferUrlError| refused(error.to_string()))?;
        let name = ApplicationName::new(name).map_err(|error| BundleError::rule(error.to_string()))?;
        if self.applications.contains_key(&name) {
            return Err(refused("the bundle has an application of this name".to_owned()));
        }
        self.saas.insert(name, url);
        Ok(())
    }

    /// Reads `[a, b]`, or `[a, [b, c]]` for several relations.
    fn relate(&mut self, ends: &Value) -> Result<(), BundleError> {
        let refused = || {
            BundleError::rule(format!("relation {ends}: write [APPLICATION:ENDPOINT, APPLICATION:ENDPOINT]"))
        };
        let Some([first, second]) = ends.as_array().map(Vec::as_slice) else { return Err(refused()) };
        let several = |end: &Value| -> Option<Vec<String>> {
            match end {
                Value::String(one) => Some(vec![one.clone()]),
                Value::Array(all) => all.iter().map(|end| end.as_str().map(str::to_owned)).collect(),
                _ => None,
            }
        };
        for first in several(first).ok_or_else(refused)? {
            for second in several(second).ok_or_else(refused)? {
                let relation = (self.end(&first)?, self.end(&second)?);
                if !self.relations.contains(&relation) {
                    self.relations.push(relation);
                }
            }
        }
        Ok(())
    }

    fn end(&self, text: &str) -> Result<EndpointSelector, BundleError> {
        let end: EndpointSelector =
            text.parse().map_err(|error| BundleError::rule(format!("relation end {text:?}: {error}")))?;
        let known = self.applications.contains_key(&end.application);
        match known || self.saas.contains_key(&end.application) {
            true => Ok(end),
            false => Err(BundleError::rule(format!(
                "relation end {text:?}: the bundle has no application {}",
                end.application
            ))),
        }
    }

    /// Checks that places name units, applications and machines of the bundle.
    fn check_places(&self) -> Result<(), BundleError> {
        for (name, application) in &self.applications {
            for place in &application.to {
                let beside = match place {
                    BundlePlacement::Unit(unit) => unit.application(),
                    BundlePlacement::Application(beside) => beside,
                    BundlePlacement::New | BundlePlacement::Machine(_) | BundlePlacement::Agent(_) => {
                        continue;
                    }
                };
                if beside == name {
                    return Err(BundleError::rule(format!(
                        "application {name}: it cannot be placed beside itself"
                    )));
                }
                if !self.applications.contains_key(beside) {
                    return Err(BundleError::rule(format!(
                        "application {name}: it is placed beside {beside}, which the bundle does not have"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn application<E: fmt::Display>(
    at: &str,
    body: raw::Application,
    machines: &[String],
    include: &mut impl FnMut(&str) -> Result<Option<String>, E>,
) -> Result<BundleApplication, BundleError> {
    let refused = |what: String| BundleError::rule(format!("{at}: {what}"));
    let broken = |rule: BrokenRule| refused(rule.to_string());
    let charm = body.charm.filter(|charm| !charm.is_empty());
    let charm = charm.ok_or_else(|| refused("it has no charm".to_owned()))?;
    if let Some(units) = body.units.filter(|units| *units > MAX_UNITS) {
        return Err(refused(format!("{units} units are too many; at most {MAX_UNITS}")));
    }
    let mut options = BTreeMap::new();
    for (key, value) in body.options.unwrap_or_default() {
        let text = match value {
            Value::Null => continue,
            Value::Bool(truth) => truth.to_string(),
            Value::Number(number) => number.to_string(),
            Value::String(text) => {
                match include(&text).map_err(|error| refused(format!("option {key}: {error}")))? {
                    Some(included) => included,
                    None => text,
                }
            }
            Value::Array(_) | Value::Object(_) => {
                return Err(refused(format!(
                    "option {key} is neither a text nor a number nor a truth value"
                )));
            }
        };
        options.insert(key, text);
    }
    let to = match body.to {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(places)) => places,
        Some(one) => vec![one],
    };
    let to = to.iter().map(|value| place(value, machines).map_err(&broken)).collect::<Result<_, _>>()?;
    let (expose, trust) = (body.expose.unwrap_or_default(), body.trust.unwrap_or_default());
    let resources = body.resources.unwrap_or_default().into_iter().map(|(name, value)| {
        let place = match value {
            Value::String(place) if !place.is_empty() => place,
            Value::Number(_) => {
                return Err(refused(format!(
                    "resource {name}: revisions of a store are not supported; write the path of a file"
                )));
            }
            _ => return Err(refused(format!("resource {name}: write the path of a file"))),
        };
        let name = ResourceName::new(&name).map_err(|error| refused(error.to_string()))?;
        Ok((name, place))
    });
    let resources = resources.collect::<Result<_, _>>()?;
    let mut offers = BTreeMap::new();
    for (offer, body) in body.offers.unwrap_or_default() {
        let name = ApplicationName::new(&offer).map_err(|error| refused(error.to_string()))?;
        let endpoints = body.endpoints.iter().map(|name| EndpointName::new(name));
        let endpoints = endpoints.collect::<Result<BTreeSet<_>, _>>();
        let endpoints = endpoints.map_err(|error| refused(format!("offer {offer}: {error}")))?;
        if endpoints.is_empty() {
            return Err(refused(format!("offer {offer}: it has no endpoints")));
        }
        offers.insert(name, endpoints);
    }
    let exposed_endpoints = exposed_endpoints(body.exposed_endpoints.unwrap_or_default()).map_err(&broken)?;
    if expose && !exposed_endpoints.is_empty() {
        return Err(refused(
            "it is exposed for everybody (expose) and for some (exposed-endpoints)".to_owned(),
        ));
    }
    let constraints = body.constraints.map(|text| Constraints::parse([text.as_str()])).transpose();
    Ok(BundleApplication {
        charm,
        units: body.units,
        to,
        options,
        expose,
        exposed_endpoints,
        storage: directives(body.storage.unwrap_or_default()).map_err(&broken)?,
        bindings: bindings(body.bindings.unwrap_or_default()).map_err(&broken)?,
        constraints: constraints.map_err(|error| refused(error.to_string()))?,
        trust,
        resources,
        offers,
    })
}

/// The most addresses and spaces that an endpoint is exposed to; the controller has a bound of its own.
const MAX_SOURCES: usize = 1_000;

fn exposed_endpoints(
    raw: BTreeMap<String, Option<raw::Exposed>>,
) -> Result<BTreeMap<String, Exposure>, BrokenRule> {
    let exposure = |(endpoint, raw): (String, Option<raw::Exposed>)| {
        let raw = raw.unwrap_or_default();
        let (cidrs, spaces) =
            (raw.expose_to_cidrs.unwrap_or_default(), raw.expose_to_spaces.unwrap_or_default());
        if cidrs.len().saturating_add(spaces.len()) > MAX_SOURCES {
            return Err(BrokenRule::from("too many CIDRs and spaces")
                .at(format_args!("exposed-endpoints {endpoint:?}")));
        }
        let at = |error: &dyn fmt::Display| {
            BrokenRule::of(error).at(format_args!("exposed-endpoints {endpoint:?}"))
        };
        let cidrs = cidrs.iter().map(|text| text.parse().map_err(|error: SubnetError| at(&error)));
        let spaces = spaces.iter().map(|text| SpaceName::new(text).map_err(|error| at(&error)));
        let exposure =
            Exposure { cidrs: cidrs.collect::<Result<_, _>>()?, spaces: spaces.collect::<Result<_, _>>()? };
        Ok((endpoint, exposure))
    };
    raw.into_iter().map(exposure).collect()
}

/// Reads `NAME: DIRECTIVE`; a bare number is a count.
fn directives(raw: BTreeMap<String, Value>) -> Result<StorageDirectives, BrokenRule> {
    let directive = |(name, value): (String, Value)| {
        let text = match value {
            Value::Number(number) => number.to_string(),
            Value::String(text) => text,
            other => return Err(format!("storage {name}: invalid directive {other}").into()),
        };
        let at = |error: &dyn fmt::Display| BrokenRule::of(error).at(format_args!("storage {name}"));
        let directive = text.parse().map_err(|error: DirectiveError| at(&error))?;
        Ok((StorageName::new(&name).map_err(|error| at(&error))?, directive))
    };
    raw.into_iter().map(directive).collect()
}

/// Reads bindings. The empty name stands for all endpoints that are not named.
fn bindings(raw: BTreeMap<String, String>) -> Result<Bindings, BrokenRule> {
    let mut bindings = Bindings::default();
    for (name, space) in raw {
        let space = SpaceName::new(&space).map_err(|error| format!("binding {name:?}: {error}"))?;
        match name.is_empty() {
            true => bindings.default = Some(space),
            false => drop(bindings.endpoints.insert(name, space)),
        }
    }
    Ok(bindings)
}

/// Reads `new`, `KEY`, `agent=NAME`, `APPLICATION/N` or `APPLICATION`.
fn place(value: &Value, machines: &[String]) -> Result<BundlePlacement, BrokenRule> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        other => return Err(format!("invalid placement {other}").into()),
    };
    if text == "new" {
        return Ok(BundlePlacement::New);
    }
    if let Some(agent) = text.strip_prefix("agent=") {
        return agent
            .parse()
            .map(BundlePlacement::Agent)
            .map_err(|error: crate::NameError| BrokenRule::of(error));
    }
    if machines.contains(&text) {
        return Ok(BundlePlacement::Machine(text));
    }
    if text.contains(':') {
        return Err(format!("place {text:?}: there are no containers inside machines").into());
    }
    if let Ok(unit) = text.parse::<UnitName>() {
        return Ok(BundlePlacement::Unit(unit));
    }
    match ApplicationName::new(text.as_str()) {
        Ok(beside) => Ok(BundlePlacement::Application(beside)),
        Err(_) => {
            Err(format!("place {text:?}: the bundle's machines do not have it, and it is no application")
                .into())
        }
    }
}
