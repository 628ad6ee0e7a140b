//! The commands `integrate` and `remove-relation` (`docs/hook-model.md` 2.1, 2.2).

use std::sync::Arc;

use periapt_host_api::{
    ErrorCode, Refusal, RelationId,
    command::{Answer, EndpointSelector, Force, RelationSelector},
    network::Subnet,
    relation::{Endpoint, Scope},
    settings::MAX_SUBNETS,
    status::Life,
};

use super::{
    endpoints::{self, Pair},
    life,
};
use crate::{
    entity::{
        CrossModelId, CrossModelPart, CrossModelSide, Relation, RelationProgress, RemoteSource, SequenceKey,
    },
    offer,
    transaction::Transaction,
};

pub(crate) fn integrate(
    tx: &mut Transaction<'_>,
    first: &EndpointSelector,
    second: &EndpointSelector,
    via: &[Subnet],
) -> Result<Answer, Refusal> {
    tx.require_alive()?;
    let pair = endpoints::infer(tx, first, second)?;
    let cannot = |code, reason: String| {
        Refusal::new(code, format!("cannot add relation {:?}: {reason}", pair.describe()))
            .about(format!("relation {}", pair.describe()))
    };
    check_ends(tx, &pair).map_err(|(code, reason)| cannot(code, reason))?;
    let id = RelationId(tx.take_numbers(SequenceKey::Relation, 1)?);
    let cross = crossing(tx, &pair, id).map_err(|(code, reason)| cannot(code, reason))?;
    if cross.is_none() && !via.is_empty() {
        let text = "the --via option can only be used when relating to offers in a different model";
        return Err(cannot(ErrorCode::BadRequest, text.to_owned()));
    }
    if via.len() > MAX_SUBNETS {
        let text = format!("traffic comes from at most {MAX_SUBNETS} subnets, {} are named", via.len());
        return Err(cannot(ErrorCode::QuotaExceeded, text));
    }
    tx.put(Relation {
        id,
        endpoints: pair.ends.clone(),
        scope: pair.scope,
        life: Life::Alive,
        suspended: false,
        suspended_reason: String::new(),
        cross,
        egress: via.to_vec(),
        progress: RelationProgress::Joining,
        state_since: None,
        created_at: tx.now(),
    });
    Ok(Answer::Relation { id, endpoints: pair.ends })
}

fn check_ends(tx: &Transaction<'_>, pair: &Pair) -> Result<(), (ErrorCode, String)> {
    let internal = |refusal: Refusal| (refusal.code, refusal.message);
    let mut subordinates = 0;
    for end in &pair.ends {
        if endpoints::consumed(tx, &end.application).is_some() {
            continue;
        }
        let application = tx.application(&end.application).map_err(internal)?;
        if application.life != Life::Alive {
            //
            return Err((
                ErrorCode::NotAlive,
                format!("application {:?} is not alive", application.name.as_str()),
            ));
        }
        subordinates += usize::from(application.subordinate);
    }
    if pair.scope == Scope::Container && subordinates == 0 {
        //
        let text = "container scoped relation requires at least one subordinate application";
        return Err((ErrorCode::BadRequest, text.to_owned()));
    }
    let twin = pair.ends.first().and_then(|end| {
        let mut relations = tx.state.relations_of(&end.application);
        relations.find(|relation| relation.life != Life::Dead && relation.endpoints == pair.ends)
    });
    if let Some(twin) = twin {
        //
        let state = match twin.life {
            Life::Alive => "already exists",
            Life::Dying | Life::Dead => "is dying, but not yet removed",
        };
        return Err((ErrorCode::AlreadyExists, format!("relation {} {state}", twin.describe())));
    }
    for end in &pair.ends {
        if endpoints::consumed(tx, &end.application).is_some() {
            continue;
        }
        let application = tx.application(&end.application).map_err(internal)?;
        let meta = tx.charm_meta(&application).map_err(internal)?;
        let Some(limit) = endpoints::limit(meta, &end.name) else { continue };
        let present = tx
            .state
            .relations_of(&end.application)
            .filter(|relation| relation.life != Life::Dead && relation.endpoints.contains(end))
            .count();
        if present >= limit as usize {
            //
            return Err((
                ErrorCode::QuotaExceeded,
                format!(
                    "establishing a new relation for {end} would exceed its maximum relation limit of {limit}"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the cross-model part of a new relation, or none if both ends are in this model.
fn crossing(
    tx: &Transaction<'_>,
    pair: &Pair,
    relation: RelationId,
) -> Result<Option<CrossModelPart>, (ErrorCode, String)> {
    let offered = |end: &&Endpoint| endpoints::consumed(tx, &end.application).is_some();
    let (there, here): (Vec<&Endpoint>, Vec<&Endpoint>) = pair.ends.iter().partition(offered);
    let (there, here) = match (there.as_slice(), here.as_slice()) {
        ([], _) => return Ok(None),
        ([there], [here]) => (there, here),
        _ => {
            let text = "both ends are offers of other models; one must be an application of this one";
            return Err((ErrorCode::BadRequest, text.to_owned()));
        }
    };
    let Some(remote) = endpoints::consumed(tx, &there.application) else { return Ok(None) };
    if remote.life != Life::Alive {
        let text = format!("saas application {:?} is not alive", remote.name.as_str());
        return Err((ErrorCode::NotAlive, text));
    }
    if pair.scope != Scope::Global {
        let text = "local endpoint must be globally scoped for remote relations";
        return Err((ErrorCode::BadRequest, text.to_owned()));
    }
    let RemoteSource::Offer { url, offer, model } = &remote.source else { return Ok(None) };
    let gone = || (ErrorCode::NotFound, "the offering model is gone".to_owned());
    let offering = tx.root.model(model).ok_or_else(gone)?;
    offer::check_connection(tx.root, offering, offering.offer_with(offer), here, &there.name)?;
    let side = CrossModelSide::Consumer { model: *model, url: url.clone(), met: false };
    let id = CrossModelId { consumer: tx.uuid, relation };
    Ok(Some(CrossModelPart { id, offer: *offer, remote: remote.name.clone(), side }))
}

pub(crate) fn remove_relation(
    tx: &mut Transaction<'_>,
    selector: &RelationSelector,
    force: Option<Force>,
) -> Result<Answer, Refusal> {
    let relation = select(tx, selector)?;
    if relation.is_peer() {
        // G14
        let text = format!("cannot destroy relation {:?}: is a peer relation", relation.describe());
        return Err(Refusal::bad_request(text).about(format!("relation {}", relation.id)));
    }
    life::destroy(tx, &relation, force);
    let still_there = tx.state.relation(&relation.id).filter(|relation| relation.life != Life::Dead);
    Ok(match still_there {
        None => Answer::Removal { gone: true, waits_for: Vec::new() },
        Some(relation) => Answer::Removal { gone: false, waits_for: life::waits_for(&tx.state, relation) },
    })
}

fn select(tx: &Transaction<'_>, selector: &RelationSelector) -> Result<Arc<Relation>, Refusal> {
    let (first, second) = match selector {
        RelationSelector::Id(id) => return tx.relation(id),
        RelationSelector::Endpoints(first, second) => (first, second),
    };
    for end in [first, second] {
        if tx.state.remote_application(&end.application).is_none() {
            tx.application(&end.application)?;
        }
    }
    let names = |relation: &Relation, selector: &EndpointSelector| {
        relation.endpoints.iter().any(|end| {
            end.application == selector.application
                && selector.endpoint.as_ref().is_none_or(|endpoint| *endpoint == end.name)
        })
    };
    let found: Vec<&Arc<Relation>> = tx
        .state
        .relations_of(&first.application)
        .filter(|relation| {
            // A selector means a peer relation only if it names the same application twice.
            relation.life != Life::Dead
                && (first.application == second.application) == relation.is_peer()
                && names(relation, first)
                && names(relation, second)
        })
        .collect();
    let wanted = format!("{} {}", endpoints::describe(first), endpoints::describe(second));
    match found.as_slice() {
        [only] => Ok(Arc::clone(only)),
        [] => Err(Refusal::not_found(format!("relation {wanted:?} not found"))),
        several => {
            let names: Vec<String> =
                several.iter().map(|relation| format!("{:?}", relation.describe())).collect();
            let text = format!("ambiguous relation: {wanted:?} could refer to {}", names.join("; "));
            Err(Refusal::new(ErrorCode::Ambiguous, text))
        }
    }
}
