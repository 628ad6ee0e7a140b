//! The removal of relations (`docs/hook-model.md` 2.2).

use std::sync::Arc;

use periapt_host_api::{
    ApplicationName, RelationId, UnitName,
    command::Force,
    relation::{BagKey, Scope},
    status::Life,
};

use crate::{
    application,
    entity::{CrossModelSide, ModelKey, Relation, RelationProgress, Work},
    offer,
    root::ModelState,
    transaction::Transaction,
};

/// The most bags that one step removes.
const BAGS_PER_STEP: usize = 50;

/// The most copied units of another model that the commit that ends their relation removes.
const REMOTE_MEMBERS_AT_ONCE: usize = 10;

/// The most units that one step of a forced removal takes out of a scope.
const MEMBERS_PER_STEP: usize = 50;

/// Sets a relation dying. It is removed at once if no unit of this model is in scope.
pub(crate) fn destroy(tx: &mut Transaction<'_>, relation: &Arc<Relation>, force: Option<Force>) {
    if relation.life == Life::Alive {
        let state_since = Some(tx.now());
        tx.put(Relation { life: Life::Dying, state_since, ..Relation::clone(relation) });
        if relation.scope == Scope::Container {
            orphan_subordinates(tx, relation);
        }
    }
    if relation.life != Life::Dead && tx.state.own_member_count(relation) == 0 {
        remove(tx, &relation.id);
    } else if let Some(force) = force {
        let due = tx.force_due(force);
        tx.add_work(Work::ForceRelation { relation: relation.id }, Some(due));
    }
}

/// the worker finds subordinate units that no relation ties to their principal any more.
fn orphan_subordinates(tx: &mut Transaction<'_>, relation: &Relation) {
    for end in &relation.endpoints {
        let subordinate = tx.state.application(&end.application).is_some_and(|found| found.subordinate);
        if subordinate && tx.state.units_of(&end.application).next().is_some() {
            tx.add_work(Work::DestroySubordinates { application: end.application.clone() }, None);
        }
    }
}

/// Acts after a unit left the scope. A dying relation is removed with the last unit of this model, and a suspended
/// one becomes fully suspended. Units of another model do not delay this: that model has its own copy for them to
/// leave.
pub(crate) fn remove_if_done(tx: &mut Transaction<'_>, id: &RelationId) {
    let Some(relation) = tx.state.relation(id).cloned() else { return };
    if tx.state.own_member_count(&relation) > 0 {
        return;
    }
    match relation.life {
        Life::Dying => remove(tx, id),
        Life::Alive if relation.suspended && relation.progress == RelationProgress::Joined => {
            let state_since = Some(tx.now());
            let progress = RelationProgress::Joining;
            tx.put(Relation { progress, state_since, ..Relation::clone(&relation) });
        }
        Life::Alive | Life::Dead => {}
    }
}

/// Returns true if this model offers, and the consumer has not yet seen the relation. It must stay until then, or the
/// consumer would create it again.
fn is_unmet(tx: &Transaction<'_>, relation: &Relation) -> bool {
    let Some(cross) =
        relation.cross.as_ref().filter(|cross| matches!(cross.side, CrossModelSide::Offerer { .. }))
    else {
        return false;
    };
    let theirs = tx.root.model(&cross.id.consumer).and_then(|state| state.crossing(&cross.id));
    theirs.is_some_and(|theirs| {
        let unmet = |cross: &crate::entity::CrossModelPart| {
            matches!(cross.side, CrossModelSide::Consumer { met: false, .. })
        };
        theirs.life == Life::Alive && theirs.cross.as_ref().is_some_and(unmet)
    })
}

/// Removes a relation. While a unit has yet to run its last hooks for it, the relation stays dead
/// (`docs/hook-model.md` section 0).
fn remove(tx: &mut Transaction<'_>, id: &RelationId) {
    let Some(relation) = tx.state.relation(id).cloned() else { return };
    if is_unmet(tx, &relation) || !forget_remote_members(tx, &relation) {
        return;
    }
    if tx.state.is_remembered(&relation.id) {
        tx.put(Relation { life: Life::Dead, ..Relation::clone(&relation) });
    } else {
        forget(tx, &relation);
    }
    for application in applications(&relation) {
        application::end::remove_if_done(tx, &application);
        offer::end::remove_if_done(tx, &application);
    }
}

/// Removes the copies of another model's units from a scope. Returns true if none is left; otherwise the worker goes
/// on.
fn forget_remote_members(tx: &mut Transaction<'_>, relation: &Relation) -> bool {
    let members: Vec<UnitName> =
        tx.state.members(&relation.id).take(REMOTE_MEMBERS_AT_ONCE).map(|(unit, _)| unit.clone()).collect();
    for unit in members {
        tx.delete(ModelKey::Member(relation.id, unit));
    }
    let work = Work::ForceRelation { relation: relation.id };
    let none_left = tx.state.member_count(&relation.id) == 0;
    let at_once = |item: &Arc<crate::entity::WorkItem>| item.due.is_none() && item.work == work;
    if !none_left && !tx.state.work().any(at_once) {
        tx.add_work(work, None);
    }
    none_left
}

/// Deletes a dead relation after the last unit whose record had it has forgotten it or is gone.
pub(crate) fn forget_if_done(tx: &mut Transaction<'_>, id: &RelationId) {
    let Some(relation) = tx.state.relation(id).cloned() else { return };
    if relation.life == Life::Dead && !tx.state.is_remembered(&relation.id) {
        forget(tx, &relation);
    }
}

fn forget(tx: &mut Transaction<'_>, relation: &Relation) {
    tx.delete(ModelKey::Relation(relation.id));
    if !remove_bags(tx, &relation.id) {
        tx.add_work(Work::RemoveBags { relation: relation.id }, None);
    }
}

fn applications(relation: &Relation) -> Vec<ApplicationName> {
    let mut names: Vec<_> = relation.endpoints.iter().map(|end| end.application.clone()).collect();
    names.dedup();
    names
}

/// Removes bags while the commit has room. Returns true if none is left.
pub(crate) fn remove_bags(tx: &mut Transaction<'_>, id: &RelationId) -> bool {
    let keys: Vec<BagKey> = tx.state.bags(id).take(BAGS_PER_STEP).map(|bag| bag.key.clone()).collect();
    for key in keys {
        // The rest of the commit needs some room, too.
        if !tx.has_room(30) {
            return false;
        }
        tx.delete(ModelKey::Bag(key));
    }
    tx.state.bag_count(id) == 0
}

/// Does one step of a forced removal: takes units out of scope. Returns true once the relation is removed (G19).
pub(crate) fn force_step(tx: &mut Transaction<'_>, id: &RelationId) -> bool {
    if tx.state.relation(id).is_none_or(|relation| relation.life != Life::Dying) {
        return true;
    }
    let members: Vec<UnitName> =
        tx.state.members(id).take(MEMBERS_PER_STEP).map(|(unit, _)| unit.clone()).collect();
    for unit in members {
        tx.delete(ModelKey::Member(*id, unit));
    }
    if tx.state.member_count(id) > 0 {
        return false;
    }
    remove(tx, id);
    true
}

/// Returns the reasons that delay the removal of a dying relation.
pub(crate) fn waits_for(state: &ModelState, relation: &Relation) -> Vec<String> {
    if relation.life == Life::Alive {
        return Vec::new();
    }
    let members = state.members(&relation.id).map(|(unit, _)| unit);
    let mut members = members.filter(|unit| !relation.is_remote(unit.application()));
    let mut waits: Vec<String> =
        members.by_ref().take(5).map(|unit| format!("unit {unit} to leave its scope")).collect();
    match members.count() {
        0 => {}
        more => waits.push(format!("{more} more units to leave its scope")),
    }
    waits
}
