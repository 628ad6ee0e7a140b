//! Cross-model relations. The offering model has the offer, the consuming model has the consumed offer (SAAS), and
//! both have the relation between them, each with a copy of what the other's units do in it. The consuming model
//! creates the relation. Each model copies everything else ([`copy`]) from the other model's state, in commands that
//! write only itself. The copies are ordinary members and bags, so every view is made from one model.

pub(crate) mod command;
pub(crate) mod copy;
pub(crate) mod details;
pub(crate) mod end;
pub(crate) mod entity;
pub(crate) mod life;
pub(crate) mod status;
use std::sync::Arc;

use periapt_host_api::{
    ApplicationName, EndpointName, ErrorCode, Refusal,
    command::Caller,
    hash,
    offer::{OfferAccess, OfferUrl, RemoteEndpoint},
    relation::{Endpoint, Scope},
    status::Life,
};

use crate::{
    access::check::{denied, offer_access},
    entity::{CrossModelId, Offer, Relation},
    relation,
    root::{ModelState, Root},
};

/// The most relations of one offer. Each copies data of other models' units.
const MAX_CONNECTIONS: usize = 1_000;

/// Returns an offer by its URL, if the caller has access to it.
///
/// # Errors
/// The offer does not exist, or the caller may not know of it.
pub fn find_offer<'a>(
    root: &'a Root,
    caller: &Caller,
    url: &OfferUrl,
    needed: OfferAccess,
) -> Result<(&'a Arc<ModelState>, &'a Arc<Offer>), Refusal> {
    let unknown = || Refusal::not_found(format!("offer \"{url}\" not found")).about(format!("offer {url}"));
    let state = model_of_url(root, caller, url).ok_or_else(unknown)?;
    let offer = state.offer(&url.offer).ok_or_else(unknown)?;
    match offer_access(root, state, offer, caller) {
        Some(access) if access >= needed => Ok((state, offer)),
        Some(_) => Err(denied()),
        None => Err(unknown()),
    }
}

/// Returns the model that an offer's URL names. Without an owner it is the caller's own.
pub(crate) fn model_of_url<'a>(
    root: &'a Root,
    caller: &Caller,
    url: &OfferUrl,
) -> Option<&'a Arc<ModelState>> {
    let owner = match (&url.owner, caller) {
        (Some(owner), _) => owner,
        (None, Caller::User(user)) => user,
        (None, _) => return None,
    };
    root.model_named(owner, &url.model)
}

/// Returns an offer that a caller may see, by its URL.
///
/// # Errors
/// The offer does not exist, or the caller may not know of it; the refusals are the same.
pub(crate) fn visible_offer<'a>(
    root: &'a Root,
    caller: &Caller,
    url: &OfferUrl,
) -> Result<(&'a Arc<ModelState>, &'a Arc<Offer>), Refusal> {
    find_offer(root, caller, url, OfferAccess::Read)
}

/// Returns the URL of an offer of a model.
pub(crate) fn url_of(state: &ModelState, offer: &ApplicationName) -> OfferUrl {
    let model = state.model();
    OfferUrl { owner: Some(model.owner.clone()), model: model.name.clone(), offer: offer.clone() }
}

/// Returns the endpoints of an offer, from the current charm of its application.
pub(crate) fn endpoints_of(
    root: &Root,
    state: &ModelState,
    offer: &Offer,
) -> Vec<(EndpointName, RemoteEndpoint)> {
    let Some(application) = state.application(&offer.application) else { return Vec::new() };
    let Some(charm) = root.charm(&application.charm.digest) else { return Vec::new() };
    let found = relation::endpoints::all(application, &charm.meta);
    found
        .into_iter()
        .filter(|(end, _)| offer.endpoints.contains(&end.name))
        .map(|(end, _)| (end.name, RemoteEndpoint { interface: end.interface, role: end.role }))
        .collect()
}

/// Returns the name of a consuming application in the offering model. It is the same for all of its relations with
/// that model.
pub(crate) fn consumer_name(
    id: &CrossModelId,
    offering: &ModelState,
    application: &ApplicationName,
) -> Result<ApplicationName, Refusal> {
    let digest = hash::of_value(&(id.consumer, offering.model().uuid, application));
    let name = ApplicationName::new(&format!("remote-{digest}"));
    // A part of digits only would read as a unit's number.
    name.or_else(|_| ApplicationName::new(&format!("remote-a{}", digest.get(1..).unwrap_or_default())))
        .map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))
}

/// Returns true if a name has the form of a consumer's. No other application may have such a name.
pub(crate) fn is_consumer_name(name: &ApplicationName) -> bool {
    let digits = name.as_str().strip_prefix("remote-");
    digits.is_some_and(|it| it.len() == 32 && it.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Returns the offered end for a relation to an offer of another model, which is new or not yet known to that model.
///
/// # Errors
/// The relation is impossible, with the reason.
pub(crate) fn check_connection(
    root: &Root,
    offering: &ModelState,
    offer: Option<&Arc<Offer>>,
    theirs: &Endpoint,
    wanted: &EndpointName,
) -> Result<Endpoint, (ErrorCode, String)> {
    if offering.model().life != Life::Alive {
        return Err((ErrorCode::NotAlive, "the offering model is not alive".to_owned()));
    }
    let offer = offer.ok_or_else(|| (ErrorCode::NotFound, "the offer was removed".to_owned()))?;
    let gone = || (ErrorCode::NotAlive, "the offered application is not alive".to_owned());
    let application = offering
        .application(&offer.application)
        .filter(|found| found.life == Life::Alive)
        .ok_or_else(gone)?;
    let charm = root.charm(&application.charm.digest).ok_or_else(gone)?;
    let found = relation::endpoints::all(application, &charm.meta).into_iter().find(|(end, scope)| {
        end.name == *wanted
            && offer.endpoints.contains(wanted)
            && *scope == Scope::Global
            && end.role == theirs.role.counterpart()
            && end.interface == theirs.interface
    });
    let Some((end, _)) = found else {
        return Err((ErrorCode::Conflict, format!("the offer has no endpoint {wanted} that fits any more")));
    };
    let limit = relation::endpoints::limit(&charm.meta, &end.name).map_or(usize::MAX, |limit| limit as usize);
    let relations = offering.relations_of(&application.name);
    let present = relations.filter(|relation| is_alive_with(relation, &end)).count();
    if present >= limit {
        return Err((
            ErrorCode::QuotaExceeded,
            format!(
                "establishing a new relation for {end} would exceed its maximum relation limit of {limit}"
            ),
        ));
    }
    if offering.connections(offer).count() >= MAX_CONNECTIONS {
        return Err((
            ErrorCode::QuotaExceeded,
            format!("the offer has {MAX_CONNECTIONS} relations, which is the most"),
        ));
    }
    Ok(end)
}

fn is_alive_with(relation: &Relation, end: &Endpoint) -> bool {
    relation.life != Life::Dead && relation.endpoints.contains(end)
}
