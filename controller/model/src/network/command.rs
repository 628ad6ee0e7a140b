//! The commands for spaces, bindings and exposure.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, ErrorCode, Refusal, SpaceName,
    charm::CharmMeta,
    command::{Answer, Exposure},
    network::{ALPHA, Bindings, JUJU_INFO, Subnet},
};

use crate::{entity::Application, transaction::Transaction};

/// The most spaces of a model, and the most subnets of a space. They are part of every view of the model.
const MAX_SPACES: usize = 100;
const MAX_SUBNETS: usize = 100;

/// The most CIDRs and spaces of one exposure.
const MAX_SOURCES: usize = 100;

pub(crate) fn add_space(
    tx: &mut Transaction<'_>,
    name: &SpaceName,
    subnets: &[Subnet],
) -> Result<Answer, Refusal> {
    if tx.state.model().spaces.has(name) {
        let text = format!("space {:?} already exists", name.as_str());
        return Err(Refusal::already_exists(text).about(format!("space {name}")));
    }
    if tx.state.model().spaces.0.len() >= MAX_SPACES {
        let text = format!("at most {MAX_SPACES} spaces are allowed");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    put_subnets(tx, name, subnets)
}

pub(crate) fn move_to_space(
    tx: &mut Transaction<'_>,
    name: &SpaceName,
    subnets: &[Subnet],
) -> Result<Answer, Refusal> {
    require_space(tx, name)?;
    put_subnets(tx, name, subnets)
}

fn put_subnets(tx: &mut Transaction<'_>, name: &SpaceName, subnets: &[Subnet]) -> Result<Answer, Refusal> {
    let mut model = tx.state.model().clone();
    for others in model.spaces.0.values_mut() {
        others.retain(|subnet| !subnets.contains(subnet));
    }
    if name.as_str() != ALPHA {
        let own = model.spaces.0.entry(name.clone()).or_default();
        own.extend(subnets);
        if own.len() > MAX_SUBNETS {
            let text = format!("a space has at most {MAX_SUBNETS} subnets, this would have {}", own.len());
            return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("space {name}")));
        }
    }
    tx.put(model);
    Ok(Answer::Done)
}

pub(crate) fn rename_space(
    tx: &mut Transaction<'_>,
    name: &SpaceName,
    to: &SpaceName,
) -> Result<Answer, Refusal> {
    require_space(tx, name)?;
    let about = |refusal: Refusal| refusal.about(format!("space {name}"));
    if name.as_str() == ALPHA {
        return Err(about(Refusal::bad_request(
            "space \"alpha\" is of all that is in no other, and keeps its name",
        )));
    }
    if tx.state.model().spaces.has(to) {
        return Err(about(Refusal::already_exists(format!("space {:?} already exists", to.as_str()))));
    }
    let mut model = tx.state.model().clone();
    let subnets = model.spaces.0.remove(name).unwrap_or_default();
    model.spaces.0.insert(to.clone(), subnets);
    tx.put(model);
    let applications: Vec<_> = tx.state.applications().cloned().collect();
    for application in applications {
        let mut application = Application::clone(&application);
        let Bindings { default, endpoints } = &mut application.bindings;
        for bound in default.iter_mut().chain(endpoints.values_mut()).filter(|bound| *bound == name) {
            bound.clone_from(to);
        }
        for Exposure { spaces, .. } in application.exposures.values_mut() {
            if spaces.remove(name) {
                spaces.insert(to.clone());
            }
        }
        tx.put(application);
    }
    Ok(Answer::Done)
}

pub(crate) fn remove_space(tx: &mut Transaction<'_>, name: &SpaceName) -> Result<Answer, Refusal> {
    require_space(tx, name)?;
    let about = |refusal: Refusal| refusal.about(format!("space {name}"));
    if name.as_str() == ALPHA {
        return Err(about(Refusal::bad_request("space \"alpha\" is of all that is in no other, and stays")));
    }
    let bound = tx.state.applications().filter(|it| it.bindings.spaces().any(|space| space == name));
    let bound: Vec<String> = bound.map(|application| application.name.to_string()).collect();
    if !bound.is_empty() {
        let text = format!("space {:?} is bound by {}", name.as_str(), bound.join(", "));
        return Err(about(Refusal::conflict(text)));
    }
    let mut model = tx.state.model().clone();
    model.spaces.0.remove(name);
    tx.put(model);
    Ok(Answer::Done)
}

pub(crate) fn bind(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    bindings: &Bindings,
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    let meta = tx.charm_meta(&application)?;
    check_bindings(tx, meta, bindings).map_err(|refusal| refusal.about(format!("application {name}")))?;
    let own = &mut application.bindings;
    own.default = bindings.default.clone().or(own.default.take());
    own.endpoints.extend(bindings.endpoints.clone());
    tx.put(application);
    Ok(Answer::Done)
}

/// Refuses a binding of an endpoint that the charm does not have, or to a space that does not exist.
pub(crate) fn check_bindings(
    tx: &Transaction<'_>,
    meta: &CharmMeta,
    bindings: &Bindings,
) -> Result<(), Refusal> {
    for name in bindings.endpoints.keys() {
        if !meta.has_binding(name) {
            let text = format!("charm {:?} has no endpoint or extra binding {name:?}", meta.name);
            return Err(Refusal::bad_request(text));
        }
    }
    bindings.spaces().try_for_each(|space| require_space(tx, space))
}

fn require_space(tx: &Transaction<'_>, name: &SpaceName) -> Result<(), Refusal> {
    match tx.state.model().spaces.has(name) {
        true => Ok(()),
        false => {
            Err(Refusal::not_found(format!("space {:?} not found", name.as_str()))
                .about(format!("space {name}")))
        }
    }
}

pub(crate) fn expose(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    endpoints: &BTreeMap<String, Exposure>,
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    let meta = tx.charm_meta(&application)?;
    for (endpoint, exposure) in endpoints {
        check_exposure(tx, meta, endpoint, exposure)
            .map_err(|refusal| refusal.about(format!("application {name}")))?;
    }
    application.exposed = true;
    match endpoints.is_empty() {
        true => drop(application.exposures.insert(String::new(), Exposure::default())),
        false => application.exposures.extend(endpoints.clone()),
    }
    tx.put(application);
    Ok(Answer::Done)
}

fn check_exposure(
    tx: &Transaction<'_>,
    meta: &CharmMeta,
    endpoint: &str,
    exposure: &Exposure,
) -> Result<(), Refusal> {
    if !endpoint.is_empty()
        && endpoint != JUJU_INFO
        && !meta.endpoints.keys().any(|name| name.as_str() == endpoint)
    {
        return Err(Refusal::not_found(format!("endpoint {endpoint:?} not found")));
    }
    if exposure.cidrs.len() + exposure.spaces.len() > MAX_SOURCES {
        let text = format!("an endpoint is exposed to at most {MAX_SOURCES} CIDRs and spaces");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    if exposure.spaces.iter().any(|space| space.as_str() == ALPHA) {
        return Err(Refusal::bad_request("space \"alpha\" has no subnets of its own: name CIDRs instead"));
    }
    exposure.spaces.iter().try_for_each(|space| require_space(tx, space))
}

pub(crate) fn unexpose(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    endpoints: &[String],
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    let exposed: BTreeSet<&String> = application.exposures.keys().collect();
    if let Some(unknown) = endpoints.iter().find(|endpoint| !exposed.contains(endpoint)) {
        let text = format!("endpoint {unknown:?} is not exposed");
        return Err(Refusal::bad_request(text).about(format!("application {name}")));
    }
    application.exposures.retain(|endpoint, _| !endpoints.is_empty() && !endpoints.contains(endpoint));
    application.exposed = !application.exposures.is_empty();
    tx.put(application);
    Ok(Answer::Done)
}
