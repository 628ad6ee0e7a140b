//! Entering and leaving a relation's scope (`docs/hook-model.md` 2.3).

use std::sync::Arc;

use periapt_host_api::{
    ErrorCode, Refusal, RelationId, UnitName,
    network::{ALPHA, HostNetwork, egress_of, network_info},
    relation::{BagKey, BagOwner, Scope, Settings},
    status::{Life, StatusInfo, WorkloadStatus},
    view::Membership,
};

use super::{commit::put_settings, life};
use crate::{
    access::check::denied,
    entity::{Bag, Member, ModelKey, Relation, RelationProgress, SequenceKey, Unit},
    transaction::Transaction,
    unit::new::new_unit,
};

/// The keys that the controller writes into a unit's bag.
const INGRESS_ADDRESS: &str = "ingress-address";
const PRIVATE_ADDRESS: &str = "private-address";
const EGRESS_SUBNETS: &str = "egress-subnets";

/// Enters a unit into a scope. Changes nothing for a unit that is in scope already.
pub(crate) fn enter(tx: &mut Transaction<'_>, unit: &Unit, id: &RelationId) -> Result<(), Refusal> {
    let cannot = |code, reason: &str| {
        let text = format!("cannot enter scope of relation {id} for unit {}: {reason}", unit.name);
        Refusal::new(code, text).about(format!("relation {id}"))
    };
    if tx.state.membership(id, &unit.name).is_some() {
        return Ok(());
    }
    // A caller may not learn if a relation of other applications exists.
    let Some(relation) = tx.state.relation(id).cloned() else { return Err(denied()) };
    let Some(own) = relation.end_of(unit.name.application()) else { return Err(denied()) };
    // the unit decided on an older state, and decides again.
    if relation.life != Life::Alive || relation.suspended {
        return Err(cannot(ErrorCode::NotAlive, "relation is not alive"));
    }
    if unit.life != Life::Alive {
        return Err(cannot(ErrorCode::NotAlive, "unit is not alive"));
    }
    if relation.scope == Scope::Container {
        let counterpart = relation.other_end(&own.application).map(|end| end.application.clone());
        if let Some(counterpart) = counterpart {
            ensure_subordinate(tx, unit, &counterpart).map_err(|(code, reason)| cannot(code, &reason))?;
        }
    }
    let membership = Membership::Joined;
    tx.put(Member { relation: *id, unit: unit.name.clone(), membership });
    // new settings replace those of an earlier membership, under a new version that the other units see.
    let key = BagKey { relation: *id, owner: BagOwner::Unit(unit.name.clone()) };
    let version = tx.state.bag(&key).map_or(0, |bag| bag.version).saturating_add(1);
    let mut settings = Settings::new();
    set_addresses(tx, unit, &relation, &mut settings);
    let container = (relation.scope == Scope::Container)
        .then(|| unit.principal.clone().unwrap_or_else(|| unit.name.clone()));
    tx.put(Bag { key, settings, version, container });
    note_leader(tx, unit, &relation);
    Ok(())
}

/// Sets a relation joined if the unit leads its application.
pub(crate) fn note_leader(tx: &mut Transaction<'_>, unit: &Unit, relation: &Arc<Relation>) {
    let leads = tx
        .state
        .application(unit.name.application())
        .and_then(|application| application.leader.as_ref())
        .is_some_and(|leader| leader.unit == unit.name);
    if leads && relation.progress == RelationProgress::Joining {
        let state_since = Some(tx.now());
        tx.put(Relation { progress: RelationProgress::Joined, state_since, ..Relation::clone(relation) });
    }
}

/// creates the subordinate of a principal that enters a container scope, one for each application.
fn ensure_subordinate(
    tx: &mut Transaction<'_>,
    principal: &Unit,
    counterpart: &periapt_host_api::ApplicationName,
) -> Result<(), (ErrorCode, String)> {
    let Some(application) = tx.state.application(counterpart).cloned() else { return Ok(()) };
    if principal.principal.is_some() || !application.subordinate {
        return Ok(());
    }
    let present =
        tx.state.subordinates_of(&principal.name).find(|unit| unit.name.application() == counterpart);
    match present {
        Some(unit) if unit.life == Life::Alive => return Ok(()),
        Some(unit) => {
            return Err((ErrorCode::TryAgain, format!("its subordinate {} is still dying", unit.name)));
        }
        None => {}
    }
    let number = tx
        .take_numbers(SequenceKey::Unit(counterpart.clone()), 1)
        .map_err(|refusal| (refusal.code, refusal.message))?;
    let mut unit = new_unit(tx, UnitName::new(counterpart.clone(), number), None);
    unit.principal = Some(principal.name.clone());
    // P-6
    unit.machine = principal.machine;
    unit.workload_status = StatusInfo::new(WorkloadStatus::Waiting, "agent initialising", tx.now());
    let name = unit.name.clone();
    tx.put(unit);
    let refused = |refusal: Refusal| (refusal.code, refusal.message);
    let meta = tx.charm_meta(&application).map_err(refused)?;
    for wanted in crate::storage::life::of_new_unit(meta, &application.storage) {
        crate::storage::life::make(tx, &name, &wanted).map_err(refused)?;
    }
    Ok(())
}

/// Writes a unit's present addresses into its bags, after config-changed.
pub(crate) fn refresh_addresses(tx: &mut Transaction<'_>, unit: &Unit) {
    let scopes: Vec<RelationId> = tx.state.scopes_of(&unit.name).copied().collect();
    for id in scopes {
        let key = BagKey { relation: id, owner: BagOwner::Unit(unit.name.clone()) };
        let (Some(bag), Some(relation)) = (tx.state.bag(&key).cloned(), tx.state.relation(&id).cloned())
        else {
            continue;
        };
        let mut settings = bag.settings.clone();
        set_addresses(tx, unit, &relation, &mut settings);
        put_settings(tx, key, settings);
    }
}

/// Sets the three addresses of a unit's bag from the space of its binding. Unknown addresses stay unset.
fn set_addresses(tx: &Transaction<'_>, unit: &Unit, relation: &Relation, settings: &mut Settings) {
    let application = unit.name.application();
    let host = tx.state.agent_of(unit).and_then(|name| tx.root.agent(name)).map(|agent| &agent.host);
    let (Some(host), Some(end)) = (host, relation.end_of(application)) else { return };
    let space = tx.state.application(application).map_or(ALPHA, |it| it.bindings.space_of(end.name.as_str()));
    let network = HostNetwork { addresses: &host.addresses, interfaces: &host.interfaces };
    let egress = egress_of(&relation.egress, tx.state.config());
    let info = network_info(network, &tx.state.model().spaces, egress, space);
    if let Some(address) = info.ingress_address() {
        settings.insert(INGRESS_ADDRESS.to_owned(), address.to_owned());
        settings.insert(PRIVATE_ADDRESS.to_owned(), address.to_owned());
    }
    if !info.egress_subnets.is_empty() {
        let subnets: Vec<String> = info.egress_subnets.iter().map(ToString::to_string).collect();
        settings.insert(EGRESS_SUBNETS.to_owned(), subnets.join(","));
    }
}

/// Takes a unit out of a scope. Its bag stays until the relation is removed.
pub(crate) fn leave(tx: &mut Transaction<'_>, unit: &UnitName, id: &RelationId) {
    if tx.state.membership(id, unit).is_some() {
        tx.delete(ModelKey::Member(*id, unit.clone()));
        life::remove_if_done(tx, id);
    }
}

/// marks a dying unit's membership, so that the other units see at once that it leaves.
pub(crate) fn mark_departing(tx: &mut Transaction<'_>, unit: &UnitName, id: &RelationId) {
    if tx.state.membership(id, unit).is_some() {
        let membership = Membership::Departing;
        tx.put(Member { relation: *id, unit: unit.clone(), membership });
    }
}
