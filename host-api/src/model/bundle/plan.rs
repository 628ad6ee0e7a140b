//! Plans: the steps that bring a model in line with a bundle. The plan of an unchanged bundle is empty.

mod step;

use std::collections::{BTreeMap, BTreeSet};

pub use self::step::{BundleStep, UnitPlace};
use super::{Bundle, BundleApplication, BundleError, BundlePlacement};
use crate::{
    ApplicationName, Digest, EndpointName, MachineId, ResourceName, SpaceName, UnitName,
    charm::CharmMeta,
    command::{EndpointSelector, Exposure},
    constraints::Constraints,
    network::{ALPHA, Bindings},
    offer::OfferUrl,
    resource::ResourceUpload,
    rule::BrokenRule,
    settings::OptionValues,
    storage::StorageDirectives,
};

/// A charm of a bundle.
#[derive(Debug, Clone)]
pub struct BundleCharm {
    /// The digest by which the charm is deployed.
    pub digest: Digest,
    /// The charm's metadata.
    pub meta: CharmMeta,
    /// The content of resources from the bundle.
    pub resources: BTreeMap<ResourceName, ResourceUpload>,
}

/// The parts of a model that a bundle can change.
#[derive(Debug, Clone, Default)]
pub struct BundleModel {
    /// The applications, by name.
    pub applications: BTreeMap<ApplicationName, Existing>,
    /// Consumed offers of other models.
    pub saas: BTreeMap<ApplicationName, OfferUrl>,
    /// The two ends of each relation that is no peer relation.
    pub relations: Vec<[(ApplicationName, EndpointName); 2]>,
}

/// An application that exists in the model.
#[derive(Debug, Clone)]
pub struct Existing {
    /// The digest of its charm's archive.
    pub charm: Digest,
    /// The option values that operators set.
    pub options: OptionValues,
    /// The application's units and their machines, by number; empty for a subordinate.
    pub units: Vec<(UnitName, Option<MachineId>)>,
    /// True if the units run beside units of a principal application.
    pub subordinate: bool,
    /// True if the application is exposed.
    pub exposed: bool,
    /// Exposed endpoints, with the networks that may reach their ports. Empty means that all networks reach all
    /// ports.
    pub exposures: BTreeMap<String, Exposure>,
    /// Storage directives that differ from the charm's declaration.
    pub storage: StorageDirectives,
    /// The spaces that the endpoints are bound to.
    pub bindings: Bindings,
    /// Constraints on the agents of the units, and on the memory of hooks.
    pub constraints: Constraints,
    /// True if the application is trusted.
    pub trust: bool,
    /// The content of its resources.
    pub resources: BTreeMap<ResourceName, Digest>,
    /// Offers of the application: endpoints by offer name.
    pub offers: BTreeMap<ApplicationName, BTreeSet<EndpointName>>,
}

/// Compares a bundle with a model.
///
/// `charms` holds each application's charm. `machines` maps keys of the bundle's machines to machines of the model;
/// other keys stand for new machines.
///
/// # Errors
/// [`BundleError`]: an option or an endpoint that the charm does not have, a value of the wrong type, places that
/// depend on each other.
pub fn plan(
    bundle: &Bundle,
    charms: &BTreeMap<ApplicationName, BundleCharm>,
    model: &BundleModel,
    machines: &BTreeMap<String, MachineId>,
) -> Result<Vec<BundleStep>, BundleError> {
    let mut steps = Vec::new();
    for (name, wanted) in &bundle.applications {
        let charm =
            charms.get(name).ok_or_else(|| BundleError::rule(format!("application {name}: no charm")))?;
        application(name, wanted, charm, model.applications.get(name), &mut steps)?;
    }
    let mut units =
        Units { bundle, charms, model, machines, anchors: BTreeMap::new(), done: BTreeSet::new() };
    for name in bundle.applications.keys() {
        units.add(name, &mut Vec::new(), &mut steps)?;
    }
    for (name, url) in &bundle.saas {
        match model.saas.get(name) {
            None => steps.push(BundleStep::Consume { application: name.clone(), offer: url.clone() }),
            Some(present) if is_the_same(present, url) => {}
            Some(present) => {
                return Err(BundleError::rule(format!("saas {name}: the model has it for {present}")));
            }
        }
    }
    for relation in &bundle.relations {
        for end in [&relation.0, &relation.1] {
            check_end(end, charms)?;
        }
        if !model.relations.iter().any(|ends| is_between(ends, relation)) {
            steps.push(BundleStep::Integrate(relation.0.clone(), relation.1.clone()));
        }
    }
    Ok(steps)
}

/// Plans an application without its units.
fn application(
    name: &ApplicationName,
    wanted: &BundleApplication,
    charm: &BundleCharm,
    existing: Option<&Existing>,
    steps: &mut Vec<BundleStep>,
) -> Result<(), BundleError> {
    let at = |what: String| BundleError::rule(format!("application {name}: {what}"));
    let mut differing = BTreeMap::new();
    for (key, text) in &wanted.options {
        let option = charm.meta.options.get(key).ok_or_else(|| {
            let known: Vec<_> = charm.meta.options.keys().map(String::as_str).collect();
            at(format!("charm {} has no option {key}; it has: {}", charm.meta.name, known.join(", ")))
        })?;
        let value = option.kind.parse(text);
        let value = value
            .ok_or_else(|| at(format!("option {key} is of type {}, not {text:?}", option.kind.as_str())))?;
        if existing.and_then(|existing| existing.options.get(key)) != Some(&value) {
            differing.insert(key.clone(), text.clone());
        }
    }
    check_names(wanted, &charm.meta).map_err(|broken| at(broken.to_string()))?;
    for (resource, upload) in &charm.resources {
        let meta = charm.meta.resources.get(resource).ok_or_else(|| {
            let known: Vec<_> = charm.meta.resources.keys().map(ResourceName::as_str).collect();
            at(format!("charm {} has no resource {resource}; it has: {}", charm.meta.name, known.join(", ")))
        })?;
        meta.admits(resource, upload.filename.as_deref()).map_err(|broken| at(broken.to_string()))?;
    }
    let application = || name.clone();
    let Some(existing) = existing else {
        steps.push(BundleStep::Deploy {
            application: application(),
            charm: charm.digest,
            options: differing,
            storage: wanted.storage.clone(),
            bindings: wanted.bindings.clone(),
            constraints: wanted.constraints.clone().unwrap_or_default(),
            trust: wanted.trust,
            resources: charm.resources.clone(),
        });
        if wanted.expose || !wanted.exposed_endpoints.is_empty() {
            let endpoints = wanted.exposed_endpoints.clone();
            steps.push(BundleStep::Expose { application: application(), endpoints });
        }
        offer(name, wanted, &BTreeMap::new(), steps);
        return Ok(());
    };
    for (store, directive) in &wanted.storage {
        let before = existing.storage.get(store).cloned().unwrap_or_default();
        if before != *directive {
            let text =
                "units that are there keep the storage that was said when the application was deployed";
            return Err(at(format!("storage {store} cannot become {directive}: {text} ({before})")));
        }
    }
    if existing.charm != charm.digest {
        steps.push(BundleStep::Refresh { application: application(), charm: charm.digest });
    }
    for (resource, upload) in &charm.resources {
        if existing.resources.get(resource) != Some(&upload.digest) {
            let (resource, upload) = (resource.clone(), upload.clone());
            steps.push(BundleStep::Attach { application: application(), resource, upload });
        }
    }
    if !differing.is_empty() {
        steps.push(BundleStep::Configure { application: application(), options: differing });
    }
    let bindings = differing_bindings(&wanted.bindings, &existing.bindings);
    if !bindings.is_empty() {
        steps.push(BundleStep::Bind { application: application(), bindings });
    }
    if let Some(constraints) = wanted.constraints.clone().filter(|asked| *asked != existing.constraints) {
        steps.push(BundleStep::Constrain { application: application(), constraints });
    }
    steps.extend((wanted.trust && !existing.trust).then(|| BundleStep::Trust(application())));
    if wanted.expose && !existing.exposed {
        steps.push(BundleStep::Expose { application: application(), endpoints: BTreeMap::new() });
    }
    let mut endpoints = wanted.exposed_endpoints.clone();
    endpoints.retain(|endpoint, exposure| existing.exposures.get(endpoint) != Some(exposure));
    if !endpoints.is_empty() {
        steps.push(BundleStep::Expose { application: application(), endpoints });
    }
    offer(name, wanted, &existing.offers, steps);
    Ok(())
}

/// Checks that the charm has the bundle's storage and endpoints.
fn check_names(wanted: &BundleApplication, meta: &CharmMeta) -> Result<(), BrokenRule> {
    let known = |names: Vec<&str>| match names.is_empty() {
        true => "it has none".to_owned(),
        false => format!("it has: {}", names.join(", ")),
    };
    let charm = &meta.name;
    if let Some(name) = wanted.storage.keys().find(|name| !meta.storage.contains_key(*name)) {
        let known = known(meta.storage.keys().map(|name| name.as_str()).collect());
        return Err(format!("charm {charm} has no storage {name}; {known}").into());
    }
    let endpoints = || known(meta.endpoints.keys().map(EndpointName::as_str).collect());
    if let Some(name) = wanted.bindings.endpoints.keys().find(|name| !meta.has_binding(name)) {
        return Err(format!("charm {charm} has no endpoint {name:?} to bind; {}", endpoints()).into());
    }
    let exposed = wanted.exposed_endpoints.keys().filter(|name| !name.is_empty());
    match exposed.into_iter().find(|name| !meta.has_binding(name)) {
        Some(name) => {
            Err(format!("charm {charm} has no endpoint {name:?} to expose; {}", endpoints()).into())
        }
        None => Ok(()),
    }
}

/// Returns the wanted bindings that differ from the existing ones.
fn differing_bindings(wanted: &Bindings, existing: &Bindings) -> Bindings {
    let endpoints = wanted.endpoints.iter();
    let endpoints = endpoints.filter(|(name, space)| existing.space_of(name) != space.as_str());
    let as_it_was =
        |space: &SpaceName| existing.default.as_ref().map_or(ALPHA, SpaceName::as_str) == space.as_str();
    Bindings {
        default: wanted.default.clone().filter(|space| !as_it_was(space)),
        endpoints: endpoints.map(|(name, space)| (name.clone(), space.clone())).collect(),
    }
}

/// Plans the offers that do not exist or have other endpoints.
fn offer(
    name: &ApplicationName,
    wanted: &BundleApplication,
    present: &BTreeMap<ApplicationName, BTreeSet<EndpointName>>,
    steps: &mut Vec<BundleStep>,
) {
    let differing = wanted.offers.iter().filter(|(offer, endpoints)| present.get(*offer) != Some(endpoints));
    steps.extend(differing.map(|(offer, endpoints)| BundleStep::Offer {
        application: name.clone(),
        offer: offer.clone(),
        endpoints: endpoints.clone(),
    }));
}

/// Returns true if a URL, with or without its owner, is that of the model's offer.
fn is_the_same(present: &OfferUrl, wanted: &OfferUrl) -> bool {
    present.model == wanted.model
        && present.offer == wanted.offer
        && (wanted.owner.is_none() || wanted.owner == present.owner)
}

/// The planner of missing units. It places each application's units after those beside which they go.
struct Units<'a> {
    bundle: &'a Bundle,
    charms: &'a BTreeMap<ApplicationName, BundleCharm>,
    model: &'a BundleModel,
    machines: &'a BTreeMap<String, MachineId>,
    /// The first unit on each of the bundle's machines.
    anchors: BTreeMap<String, (ApplicationName, usize)>,
    done: BTreeSet<ApplicationName>,
}

impl Units<'_> {
    fn add(
        &mut self,
        name: &ApplicationName,
        waiting: &mut Vec<ApplicationName>,
        steps: &mut Vec<BundleStep>,
    ) -> Result<(), BundleError> {
        let Some(wanted) = self.bundle.applications.get(name).filter(|_| !self.done.contains(name)) else {
            return Ok(());
        };
        if waiting.contains(name) {
            return Err(BundleError::rule(format!(
                "application {name}: its units are placed beside its own, in a circle"
            )));
        }
        waiting.push(name.clone());
        for place in &wanted.to {
            match place {
                BundlePlacement::Unit(unit) => self.add(unit.application(), waiting, steps)?,
                BundlePlacement::Application(beside) => self.add(beside, waiting, steps)?,
                BundlePlacement::New | BundlePlacement::Machine(_) | BundlePlacement::Agent(_) => {}
            }
        }
        waiting.pop();
        self.done.insert(name.clone());
        let subordinate = self.charms.get(name).is_some_and(|charm| charm.meta.subordinate);
        if subordinate && (wanted.units.unwrap_or(0) > 0 || !wanted.to.is_empty()) {
            return Err(BundleError::rule(format!(
                "application {name}: its charm is a subordinate, whose units follow those of the applications that it is related to"
            )));
        }
        let existing = self.model.applications.get(name);
        let there = existing.map_or(0, |existing| existing.units.len());
        let count =
            wanted.units.map_or(usize::from(existing.is_none() && !subordinate), |units| units as usize);
        for index in there..count {
            let place = wanted.to.get(index).or(wanted.to.last()).unwrap_or(&BundlePlacement::New);
            let place = self.place(place, name, index);
            match steps.last_mut() {
                Some(BundleStep::AddUnits { application, count, place: last })
                    if application == name && *last == place =>
                {
                    *count += 1;
                }
                _ => steps.push(BundleStep::AddUnits { application: name.clone(), count: 1, place }),
            }
        }
        Ok(())
    }

    fn place(&mut self, place: &BundlePlacement, name: &ApplicationName, index: usize) -> UnitPlace {
        match place {
            BundlePlacement::New => UnitPlace::New,
            BundlePlacement::Agent(agent) => UnitPlace::Agent(agent.clone()),
            BundlePlacement::Unit(unit) => {
                UnitPlace::Beside(unit.application().clone(), unit.number() as usize)
            }
            BundlePlacement::Application(beside) => UnitPlace::Beside(beside.clone(), index),
            BundlePlacement::Machine(key) => match (self.machines.get(key), self.anchors.get(key)) {
                (Some(machine), _) => UnitPlace::Machine(*machine),
                (None, Some((beside, index))) => UnitPlace::Beside(beside.clone(), *index),
                (None, None) => {
                    self.anchors.insert(key.clone(), (name.clone(), index));
                    UnitPlace::New
                }
            },
        }
    }
}

/// Checks that the charm of a relation's end has the endpoint.
fn check_end(
    end: &EndpointSelector,
    charms: &BTreeMap<ApplicationName, BundleCharm>,
) -> Result<(), BundleError> {
    let (Some(endpoint), Some(charm)) = (&end.endpoint, charms.get(&end.application)) else { return Ok(()) };
    if endpoint.as_str() == "juju-info" || charm.meta.endpoints.contains_key(endpoint) {
        return Ok(());
    }
    let known: Vec<_> = charm.meta.endpoints.keys().map(EndpointName::as_str).collect();
    Err(BundleError::rule(format!(
        "relation end {end}: charm {} has no such endpoint; it has: {}",
        charm.meta.name,
        known.join(", ")
    )))
}

fn is_between(
    [first, second]: &[(ApplicationName, EndpointName); 2],
    wanted: &(EndpointSelector, EndpointSelector),
) -> bool {
    let is = |end: &(ApplicationName, EndpointName), wanted: &EndpointSelector| {
        end.0 == wanted.application && wanted.endpoint.as_ref().is_none_or(|endpoint| *endpoint == end.1)
    };
    is(first, &wanted.0) && is(second, &wanted.1) || is(first, &wanted.1) && is(second, &wanted.0)
}
