//! The display of offers.

use std::collections::BTreeMap;

use periapt_host_api::{
    Refusal, UserName,
    command::Caller,
    offer::{OfferAccess, OfferConnection, OfferConnectionStatus, OfferDetails, OfferUrl, OfferUser},
};

use super::{endpoints_of, find_offer, url_of};
use crate::{
    access::check::{denied, offer_access},
    entity::{CrossModelSide, Offer, Relation, RemoteSource},
    root::{ModelState, Root},
    status::shown::charm_url,
};

/// Returns the details of one offer, by its URL.
///
/// # Errors
/// The offer does not exist, or the caller may not know of it.
pub fn offer_details(root: &Root, caller: &Caller, url: &OfferUrl) -> Result<OfferDetails, Refusal> {
    let (state, offer) = find_offer(root, caller, url, OfferAccess::Read)?;
    details(root, state, offer, caller).ok_or_else(denied)
}

/// Returns the offers of a model that a caller has access to, by name. Administrators also see the relations.
pub fn offers_of_model(root: &Root, state: &ModelState, caller: &Caller) -> Vec<OfferDetails> {
    state.offers().filter_map(|offer| details(root, state, offer, caller)).collect()
}

fn details(root: &Root, state: &ModelState, offer: &Offer, caller: &Caller) -> Option<OfferDetails> {
    let access = offer_access(root, state, offer, caller)?;
    let application = state.application(&offer.application)?;
    let connections = match access {
        OfferAccess::Admin => {
            state.connections(offer).filter_map(|relation| connection(root, state, relation)).collect()
        }
        OfferAccess::Read | OfferAccess::Consume => Vec::new(),
    };
    Some(OfferDetails {
        name: offer.name.clone(),
        uuid: offer.uuid,
        url: url_of(state, &offer.name),
        application: offer.application.clone(),
        charm: charm_url(root, state, &application.charm.digest),
        description: offer.description.clone(),
        endpoints: endpoints_of(root, state, offer).into_iter().collect(),
        access,
        users: users(root, state, offer, caller, access),
        connections,
    })
}

/// Returns the users with access to an offer, as its administrators see them. Others see themselves alone. Superusers
/// have access to every offer, and are listed if they were granted it.
fn users(
    root: &Root,
    state: &ModelState,
    offer: &Offer,
    caller: &Caller,
    access: OfferAccess,
) -> BTreeMap<UserName, OfferUser> {
    let own = match caller {
        Caller::User(name) => Some(name),
        Caller::Agent(_) | Caller::Runner { .. } | Caller::Worker => None,
    };
    let granted = state.grants().map(|grant| &grant.user).chain(offer.grants.keys());
    let named = granted.filter(|_| access == OfferAccess::Admin).chain(own);
    let shown = |name: &UserName| {
        let access = offer_access(root, state, offer, &Caller::User(name.clone()))?;
        let display_name = root.user(name)?.display_name.clone();
        Some((name.clone(), OfferUser { display_name, access }))
    };
    named.filter_map(shown).collect()
}

fn connection(root: &Root, state: &ModelState, relation: &Relation) -> Option<OfferConnection> {
    let cross = relation.cross.as_ref()?;
    let RemoteSource::Consumer { model, .. } = &state.remote_application(&cross.remote)?.source else {
        return None;
    };
    let ingress_subnets = match &cross.side {
        CrossModelSide::Offerer { ingress } => ingress.clone(),
        CrossModelSide::Consumer { .. } => return None,
    };
    // A removed model's relations stay for a moment longer.
    let owner = root.model(model).map_or_else(|| state.model().owner.clone(), |it| it.model().owner.clone());
    Some(OfferConnection {
        source_model_uuid: *model,
        username: owner,
        relation_id: relation.id,
        endpoint: relation.own_end()?.name.clone(),
        status: OfferConnectionStatus {
            current: relation.state(),
            message: relation.suspended_reason.clone(),
            since: relation.state_since.unwrap_or(relation.created_at),
        },
        ingress_subnets,
    })
}
