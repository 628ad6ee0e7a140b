//! The removal of offers and remote applications (`docs/hook-model.md` 2.2, L-3).

use std::sync::Arc;

use periapt_host_api::{ApplicationName, command::Force, status::Life};

use super::end::remove_if_done;
use crate::{
    entity::{ModelKey, Offer, Relation, RemoteApplication, Work},
    relation,
    root::ModelState,
    transaction::Transaction,
};

/// The most entities that the end of one relation writes in a commit.
const STEP: usize = 35;

/// Returns the number of relations to an application's offers. While there are any, only force removes the
/// application (L-3).
pub(crate) fn connection_count(state: &ModelState, application: &ApplicationName) -> usize {
    state.offers_of(application).map(|offer| state.connections(offer).count()).sum()
}

/// Deletes an application's offers when it is removed. Consumers see their relations end.
pub(crate) fn withdraw_offers(tx: &mut Transaction<'_>, application: &ApplicationName) {
    let names: Vec<ApplicationName> =
        tx.state.offers_of(application).map(|offer| offer.name.clone()).collect();
    for name in names {
        tx.delete(ModelKey::Offer(name));
    }
}

/// Deletes an offer, and destroys its relations.
pub(crate) fn remove_offer(tx: &mut Transaction<'_>, offer: &Offer, force: Option<Force>) {
    let connections: Vec<Arc<Relation>> = tx.state.connections(offer).cloned().collect();
    tx.delete(ModelKey::Offer(offer.name.clone()));
    destroy_relations(tx, connections, force);
}

/// Sets a consumed offer and its relations dying. It is deleted with the last of them.
pub(crate) fn destroy(tx: &mut Transaction<'_>, remote: &Arc<RemoteApplication>, force: Option<Force>) {
    if remote.life == Life::Alive {
        tx.put(RemoteApplication { life: Life::Dying, ..RemoteApplication::clone(remote) });
    }
    let relations: Vec<Arc<Relation>> = tx.state.relations_of(&remote.name).cloned().collect();
    destroy_relations(tx, relations, force);
    remove_if_done(tx, &remote.name);
}

/// Destroys relations as far as the commit has room; the worker goes on with the rest.
fn destroy_relations(tx: &mut Transaction<'_>, relations: Vec<Arc<Relation>>, force: Option<Force>) {
    let mut rest = relations
        .into_iter()
        .filter(|relation| relation.life == Life::Alive || (force.is_some() && relation.life == Life::Dying));
    while tx.has_room(STEP) {
        let Some(relation) = rest.next() else { return };
        relation::life::destroy(tx, &relation, force);
    }
    let relations: Vec<_> = rest.map(|relation| relation.id).collect();
    if !relations.is_empty() {
        tx.add_work(Work::DestroyRelations { relations, force }, None);
    }
}

/// Does one step of the worker: destroys the given relations.
pub(crate) fn destroy_relations_step(
    tx: &mut Transaction<'_>,
    relations: &[periapt_host_api::RelationId],
    force: Option<Force>,
) {
    let found = relations.iter().filter_map(|id| tx.state.relation(id)).cloned().collect();
    destroy_relations(tx, found, force);
}

/// Returns the reasons that delay the removal of a dying consumed offer.
pub(crate) fn waits_for(state: &ModelState, remote: &RemoteApplication) -> Vec<String> {
    if remote.life == Life::Alive {
        return Vec::new();
    }
    let relations = state.relations_of(&remote.name).filter(|relation| relation.life != Life::Dead);
    relations
        .map(|relation| format!("relation {} ({}) to be removed", relation.id, relation.describe()))
        .collect()
}
