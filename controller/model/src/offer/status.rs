//! The status of offers and consumed offers.

use std::collections::BTreeMap;

use periapt_host_api::status::{Life, OfferStatus, RelationState, RemoteApplicationStatus, StatusText};

use crate::{
    entity::{RemoteApplication, RemoteSource},
    offer,
    root::{ModelState, Root},
    status::shown::{charm_url, group, life_text, shown_application_status, text},
};

/// Returns the status of the consumed offers (SAAS), by name.
pub(crate) fn consumed(
    root: &Root,
    state: &ModelState,
    lease_now_ms: u64,
) -> BTreeMap<String, RemoteApplicationStatus> {
    let shown = |remote: &RemoteApplication| match &remote.source {
        RemoteSource::Consumer { .. } => None,
        RemoteSource::Offer { url, .. } => Some((
            remote.name.to_string(),
            RemoteApplicationStatus {
                url: url.to_string(),
                endpoints: remote
                    .endpoints
                    .iter()
                    .map(|(name, endpoint)| (name.to_string(), endpoint.clone()))
                    .collect(),
                life: life_text(remote.life),
                application_status: status_of(root, remote, lease_now_ms),
                relations: relations(state, remote),
            },
        )),
    };
    state.remote_applications().filter_map(|remote| shown(remote)).collect()
}

/// Returns the application's status in the offering model, or `terminated` if the offer is gone.
fn status_of(root: &Root, remote: &RemoteApplication, lease_now_ms: u64) -> StatusText {
    let terminated = || StatusText {
        current: "terminated".to_owned(),
        message: "offer has been removed".to_owned(),
        ..StatusText::default()
    };
    let RemoteSource::Offer { offer, model, .. } = &remote.source else { return terminated() };
    let Some(offering) = root.model(model) else { return terminated() };
    let application = offering.offer_with(offer).and_then(|offer| offering.application(&offer.application));
    match application {
        Some(application) => text(shown_application_status(root, offering, application, lease_now_ms)),
        None => terminated(),
    }
}

fn relations(state: &ModelState, remote: &RemoteApplication) -> BTreeMap<String, Vec<String>> {
    let alive = state.relations_of(&remote.name).filter(|relation| relation.life != Life::Dead);
    group(alive.filter_map(|relation| {
        let own = relation.end_of(&remote.name)?;
        Some((own.name.to_string(), relation.other_end(&remote.name)?.application.to_string()))
    }))
}

/// Returns the status of the model's offers, by name.
pub(crate) fn offers(root: &Root, state: &ModelState) -> BTreeMap<String, OfferStatus> {
    state
        .offers()
        .filter_map(|offer| {
            let application = state.application(&offer.application)?;
            let connections: Vec<RelationState> =
                state.connections(offer).map(|relation| relation.state()).collect();
            let endpoints = offer::endpoints_of(root, state, offer).into_iter();
            Some((
                offer.name.to_string(),
                OfferStatus {
                    application: offer.application.to_string(),
                    charm: charm_url(root, state, &application.charm.digest),
                    total_connected_count: connections.len(),
                    active_connected_count: connections
                        .iter()
                        .filter(|state| **state == RelationState::Joined)
                        .count(),
                    endpoints: endpoints.map(|(name, endpoint)| (name.to_string(), endpoint)).collect(),
                },
            ))
        })
        .collect()
}
