//! Relations across models. An offer stands in the offering model, a consumed one (SAAS) in the consuming model, and a
//! relation between them in both, each with a copy of what the other's units do in it. Who consumes makes the relation;
//! all else each model copies by itself ([`copy`]), in commands that write that model alone, from what the other one
//! shows. What is copied are ordinary members and bags, so that a view is made of one model as ever.

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
    entity::{CrossId, Offer, Relation},
    input, relation,
    root::{ModelState, Root},
};

/// The most relations that one offer has: each is a copy of what a stranger's units do.
const MAX_CONNECTIONS: usize = 1_000;

/// An offer by its URL, of which the caller knows.
///
/// # Errors
/// There is none that the caller may know of.
pub fn find_offer<'a>(
    root: &'a Root,
    caller: &Caller,
    url: &OfferUrl,
    needed: OfferAccess,
) -> Result<(&'a Arc<ModelState>, &'a Arc<Offer>), Refusal> {
    let unknown = || Refusal::not_found(format!("offer \"{url}\" not found")).about(format!("offer {url}"));
    let owner = match (&url.owner, caller) {
        (Some(owner), _) => owner,
        (None, Caller::User(user)) => user,
        (None, _) => return Err(unknown()),
    };
    let state = root.model_named(owner, &url.model).ok_or_else(unknown)?;
    let offer = state.offer(&url.offer).ok_or_else(unknown)?;
    match input::access::offer_access(state, offer, caller) {
        Some(access) if access >= needed => Ok((state, offer)),
        Some(_) => Err(input::access::denied()),
        None => Err(unknown()),
    }
}

/// How others name an offer of a model.
pub(crate) fn url_of(state: &ModelState, offer: &ApplicationName) -> OfferUrl {
    let model = state.model();
    OfferUrl { owner: Some(model.owner.clone()), model: model.name.clone(), offer: offer.clone() }
}

/// What an offer's endpoints are, as its application's charm has them now.
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

/// The name that a consuming application has in the offering model: the same for all of its relations with that model.
pub(crate) fn consumer_name(
    id: &CrossId,
    offering: &ModelState,
    application: &ApplicationName,
) -> Result<ApplicationName, Refusal> {
    let digest = hash::of_value(&(id.consumer, offering.model().uuid, application));
    let name = ApplicationName::new(&format!("remote-{digest}"));
    // A word that is only digits would read as a unit's number.
    name.or_else(|_| ApplicationName::new(&format!("remote-a{}", digest.get(1..).unwrap_or_default())))
        .map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))
}

/// Whether a name reads as that of a consumer. Nothing else may be called so.
pub(crate) fn is_consumer_name(name: &ApplicationName) -> bool {
    let digits = name.as_str().strip_prefix("remote-");
    digits.is_some_and(|it| it.len() == 32 && it.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// The offered end of a relation that a model is about to have with an offer of another one, or has already without the
/// other model knowing.
///
/// # Errors
/// It cannot be: the reason.
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
