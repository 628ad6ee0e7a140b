//! The commands for offers, consumed offers and the suspension of relations (`docs/hook-model.md` 2.2).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use periapt_host_api::{
    ApplicationName, EndpointName, ErrorCode, OfferUuid, Refusal, RelationId,
    command::{Answer, Caller, Force},
    offer::{MAX_OFFER_TEXT, OfferAccess, OfferUrl},
    relation::{Role, Scope},
    status::Life,
};

use super::life;
use crate::{
    entity::{
        CrossModelPart, CrossModelSide, Offer, Relation, RelationProgress, RemoteApplication, RemoteSource,
    },
    offer, relation,
    transaction::Transaction,
};

/// The most offers of one application. They are removed with it, in one commit.
const MAX_OFFERS: usize = 16;

/// The offer to make.
pub(crate) struct NewOffer<'a> {
    pub(crate) application: &'a ApplicationName,
    pub(crate) endpoints: &'a BTreeSet<EndpointName>,
    pub(crate) name: Option<&'a ApplicationName>,
    pub(crate) description: Option<&'a str>,
}

pub(crate) fn offer(tx: &mut Transaction<'_>, wanted: &NewOffer<'_>) -> Result<Answer, Refusal> {
    tx.require_alive()?;
    let application = tx.application(wanted.application)?;
    let name = wanted.name.unwrap_or(wanted.application);
    let cannot = |code, reason: String| {
        Refusal::new(code, format!("cannot offer application {:?}: {reason}", wanted.application.as_str()))
            .about(format!("application {}", wanted.application))
    };
    if application.life != Life::Alive {
        return Err(cannot(ErrorCode::NotAlive, "application is not alive".to_owned()));
    }
    if wanted.endpoints.is_empty() {
        return Err(cannot(ErrorCode::BadRequest, "name at least one endpoint".to_owned()));
    }
    let meta = tx.charm_meta(&application)?;
    let all = relation::endpoints::all(&application, meta);
    for endpoint in wanted.endpoints {
        let found = all.iter().find(|(end, _)| end.name == *endpoint);
        let Some((end, scope)) = found else {
            let names: Vec<&str> = meta.endpoints.keys().map(EndpointName::as_str).collect();
            let text =
                format!("it has no endpoint {:?}; its endpoints are {}", endpoint.as_str(), names.join(", "));
            return Err(cannot(ErrorCode::NotFound, text));
        };
        if end.role == Role::Peer || *scope != Scope::Global {
            let text = format!("endpoint {endpoint} is only for units of this model");
            return Err(cannot(ErrorCode::BadRequest, text));
        }
    }
    let description = wanted.description.unwrap_or(&meta.description);
    let description = shortened(description);
    match tx.state.offer(name).cloned() {
        None if tx.state.offers_of(wanted.application).count() >= MAX_OFFERS => {
            let text = format!("it has {MAX_OFFERS} offers, which is the most");
            return Err(cannot(ErrorCode::QuotaExceeded, text));
        }
        None => tx.put(Offer {
            name: name.clone(),
            uuid: OfferUuid(tx.env.uuid()),
            application: wanted.application.clone(),
            endpoints: wanted.endpoints.clone(),
            description,
            created_at: tx.now(),
            grants: BTreeMap::new(),
        }),
        Some(known) if known.application != *wanted.application => {
            let text = format!("offer {:?} is of application {}", name.as_str(), known.application);
            return Err(cannot(ErrorCode::AlreadyExists, text));
        }
        Some(known) => {
            let used = tx.state.connections(&known).filter_map(|relation| relation.own_end());
            let lost: BTreeSet<&EndpointName> =
                used.map(|end| &end.name).filter(|used| !wanted.endpoints.contains(*used)).collect();
            if let Some(lost) = lost.first() {
                let text = format!("endpoint {lost} of offer {:?} is in use", name.as_str());
                return Err(cannot(ErrorCode::Conflict, text));
            }
            tx.put(Offer { endpoints: wanted.endpoints.clone(), description, ..Offer::clone(&known) });
        }
    }
    Ok(Answer::Offer { url: offer::url_of(&tx.state, name) })
}

fn shortened(text: &str) -> String {
    let mut kept = String::new();
    for character in text.chars() {
        if kept.len() + character.len_utf8() > MAX_OFFER_TEXT {
            break;
        }
        kept.push(character);
    }
    kept
}

pub(crate) fn remove_offer(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    force: Option<Force>,
) -> Result<Answer, Refusal> {
    let unknown =
        || Refusal::not_found(format!("offer {:?} not found", name.as_str())).about(format!("offer {name}"));
    let offer = tx.state.offer(name).cloned().ok_or_else(unknown)?;
    let count = tx.state.connections(&offer).count();
    if count > 0 && force.is_none() {
        let plural = if count == 1 { "" } else { "s" };
        let text = format!(
            "cannot delete application offer {:?}: offer has {count} relation{plural}",
            name.as_str()
        );
        return Err(Refusal::conflict(text).about(format!("offer {name}")));
    }
    life::remove_offer(tx, &offer, force);
    Ok(Answer::Removal { gone: true, waits_for: Vec::new() })
}

pub(crate) fn consume(
    tx: &mut Transaction<'_>,
    caller: &Caller,
    url: &OfferUrl,
    name: Option<&ApplicationName>,
) -> Result<Answer, Refusal> {
    tx.require_alive()?;
    let name = name.unwrap_or(&url.offer);
    let cannot = |code, reason: String| {
        Refusal::new(code, format!("cannot consume offer \"{url}\": {reason}"))
            .about(format!("application {name}"))
    };
    let (offering, offer) = offer::find_offer(tx.root, caller, url, OfferAccess::Consume)?;
    let model = offering.model();
    if model.uuid == tx.uuid {
        let text =
            format!("it is an offer of this model; integrate with application {} itself", offer.application);
        return Err(cannot(ErrorCode::BadRequest, text));
    }
    if model.life != Life::Alive {
        return Err(cannot(ErrorCode::NotAlive, "the offering model is not alive".to_owned()));
    }
    if offer::is_consumer_name(name) {
        return Err(cannot(ErrorCode::BadRequest, "consumers of offers are called so".to_owned()));
    }
    if tx.state.application(name).is_some() {
        let text = format!("an application {:?} exists already; give the offer another name", name.as_str());
        return Err(cannot(ErrorCode::AlreadyExists, text));
    }
    let url = offer::url_of(offering, &offer.name);
    let source = RemoteSource::Offer { url: url.clone(), offer: offer.uuid, model: model.uuid };
    let known = tx.state.remote_application(name).cloned();
    match &known {
        Some(known) if known.life != Life::Alive => {
            let text = format!("saas application {:?} is dying, but not yet removed", name.as_str());
            return Err(cannot(ErrorCode::AlreadyExists, text));
        }
        // A consumed offer that no longer exists may be replaced by another one, if it has no relations.
        Some(known) if known.source != source && !is_replaceable(tx, known) => {
            let text = format!("saas application {:?} exists already", name.as_str());
            return Err(cannot(ErrorCode::AlreadyExists, text));
        }
        Some(_) | None => {}
    }
    let created_at = known.map_or(tx.now(), |known| known.created_at);
    let endpoints = offer::endpoints_of(tx.root, offering, offer).into_iter().collect();
    tx.put(RemoteApplication { name: name.clone(), life: Life::Alive, source, endpoints, created_at });
    Ok(Answer::Consumed { application: name.clone(), url })
}

fn is_replaceable(tx: &Transaction<'_>, known: &RemoteApplication) -> bool {
    let terminated = match &known.source {
        RemoteSource::Offer { offer, model, .. } => {
            tx.root.model(model).and_then(|state| state.offer_with(offer)).is_none()
        }
        RemoteSource::Consumer { .. } => false,
    };
    terminated && tx.state.relations_of(&known.name).next().is_none()
}

pub(crate) fn remove_saas(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    force: Option<Force>,
) -> Result<Answer, Refusal> {
    let unknown = || {
        Refusal::not_found(format!("saas application {:?} not found", name.as_str()))
            .about(format!("application {name}"))
    };
    let found = tx.state.remote_application(name).cloned();
    let remote = found.filter(|it| matches!(it.source, RemoteSource::Offer { .. })).ok_or_else(unknown)?;
    life::destroy(tx, &remote, force);
    Ok(match tx.state.remote_application(name) {
        None => Answer::Removal { gone: true, waits_for: Vec::new() },
        Some(remote) => Answer::Removal { gone: false, waits_for: life::waits_for(&tx.state, remote) },
    })
}

pub(crate) fn suspend(tx: &mut Transaction<'_>, id: &RelationId, message: &str) -> Result<Answer, Refusal> {
    let relation = offered(tx, id, "suspend")?;
    if message.len() > MAX_OFFER_TEXT {
        let text = format!("the message takes {} bytes, at most {MAX_OFFER_TEXT} are allowed", message.len());
        return Err(Refusal::bad_request(text).about(format!("relation {id}")));
    }
    let mut next = Relation { suspended: true, ..Relation::clone(&relation) };
    message.clone_into(&mut next.suspended_reason);
    if !relation.suspended {
        next.state_since = Some(tx.now());
    }
    tx.put(next);
    // There may be no unit in scope to leave.
    relation::life::remove_if_done(tx, id);
    Ok(Answer::Done)
}

pub(crate) fn resume(tx: &mut Transaction<'_>, id: &RelationId) -> Result<Answer, Refusal> {
    let relation = offered(tx, id, "resume")?;
    if relation.suspended {
        let progress = RelationProgress::Joining;
        let (suspended, suspended_reason) = (false, String::new());
        let state_since = Some(tx.now());
        tx.put(Relation { suspended, suspended_reason, state_since, progress, ..Relation::clone(&relation) });
    }
    Ok(Answer::Done)
}

/// Returns a relation to an offer of this model.
fn offered(tx: &Transaction<'_>, id: &RelationId, what: &str) -> Result<Arc<Relation>, Refusal> {
    let relation = tx.relation(id)?;
    let about = format!("relation {id}");
    let offers = |cross: &CrossModelPart| matches!(cross.side, CrossModelSide::Offerer { .. });
    if !relation.cross.as_ref().is_some_and(offers) {
        let text = format!(
            "cannot {what} relation {id} ({}): it is not associated with an offer of this model",
            relation.describe()
        );
        return Err(Refusal::bad_request(text).about(about));
    }
    if relation.life != Life::Alive {
        return Err(Refusal::not_alive(format!("cannot {what} relation {id}: it is dying")).about(about));
    }
    Ok(relation)
}
