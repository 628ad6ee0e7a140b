//! The removal of units (L-1, L-4, L-5, L-8, R-11, R-18).

use std::sync::Arc;

use periapt_host_api::{
    RelationId, UnitName,
    command::Force,
    secret::{SecretOwner, SecretReader},
    status::{AgentStatus, Life},
    storage::{MAX_PER_UNIT, UnitStorage},
};

use crate::{
    application, charm,
    entity::{Application, ModelKey, Unit, Work},
    relation,
    root::ModelState,
    secret, storage,
    transaction::Transaction,
};

/// The most scopes of a unit that one commit changes, with its deleted state entries. Each may end a relation, and
/// with it an application.
const SCOPES_PER_STEP: usize = 20;

/// The most entities of one step of a unit's end: the scopes that it leaves, the relations that end with that,
/// itself, its machine, charm, application, storage and workloads.
pub(crate) const REMOVE_ROOM: usize = 50 + MAX_PER_UNIT as usize;

/// Destroys the units that `next` finds, each after the one before it, while the commit has room. Returns the place
/// where the worker goes on, or none at the end. The names are never collected in a list: those of all units of an
/// application may exceed the size of an entity.
pub(crate) fn destroy_each(
    tx: &mut Transaction<'_>,
    mut after: Option<UnitName>,
    force: Option<Force>,
    storage: UnitStorage,
    next: impl Fn(&ModelState, Option<&UnitName>) -> Option<Arc<Unit>>,
) -> Option<ResumeAfter> {
    while let Some(unit) = next(&tx.state, after.as_ref()) {
        if !tx.has_room(REMOVE_ROOM) {
            return Some(ResumeAfter(after));
        }
        destroy(tx, &unit, force, storage);
        after = Some(unit.name.clone());
    }
    None
}

/// The unit after which work goes on; none means at the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResumeAfter(pub(crate) Option<UnitName>);

/// Destroys the subordinates of one unit while the commit has room; the worker goes on with the rest. Their number is
/// bounded, because the unit's record has a relation for each.
pub(crate) fn destroy_all(
    tx: &mut Transaction<'_>,
    units: Vec<UnitName>,
    force: Option<Force>,
    storage: UnitStorage,
) {
    let mut rest = units.into_iter();
    while tx.has_room(REMOVE_ROOM) {
        let Some(name) = rest.next() else { return };
        if let Some(unit) = tx.state.unit(&name).cloned() {
            destroy(tx, &unit, force, storage);
        }
    }
    let units: Vec<UnitName> = rest.collect();
    if !units.is_empty() {
        tx.add_work(Work::DestroyUnits { units, force, storage }, None);
    }
}

/// Sets a unit dying. A unit that no agent has ever worked on is removed at once (L-1).
pub(crate) fn destroy(
    tx: &mut Transaction<'_>,
    unit: &Arc<Unit>,
    force: Option<Force>,
    storage: UnitStorage,
) {
    let subordinates: Vec<UnitName> =
        tx.state.subordinates_of(&unit.name).map(|unit| unit.name.clone()).collect();
    if storage == UnitStorage::Destroy {
        storage::life::destroy_all(tx, &unit.name);
    }
    if unit.life == Life::Alive {
        if never_looked_after(unit) && subordinates.is_empty() && !has_provisioned(&tx.state, &unit.name) {
            remove(tx, unit);
            return;
        }
        tx.put(Unit { life: Life::Dying, ..Unit::clone(unit) });
        if !mark_scopes(tx, &unit.name) {
            tx.add_work(Work::UnitScopes { unit: unit.name.clone() }, None);
        }
    }
    if let Some(force) = force {
        let due = tx.force_due(force);
        tx.add_work(Work::ForceUnit { unit: unit.name.clone() }, Some(due));
    }
    // subordinates are destroyed with their principal, which waits for them.
    if !subordinates.is_empty() {
        destroy_all(tx, subordinates, force, storage);
    }
}

/// Returns true if a unit has provisioned storage, which its agent must detach. Other storage is removed with the
/// unit.
fn has_provisioned(state: &ModelState, unit: &UnitName) -> bool {
    state.storages_of(unit).any(|storage| storage.agent.is_some())
}

fn never_looked_after(unit: &Unit) -> bool {
    match unit.agent_status.status {
        AgentStatus::Allocating => true,
        AgentStatus::Error => unit.machine.is_none(),
        // The charm was never fetched, so no hook has run.
        AgentStatus::Failed => unit.record.charm.is_none() && !unit.record.installed,
        AgentStatus::Executing | AgentStatus::Idle | AgentStatus::Lost => false,
    }
}

/// Marks a dying unit's memberships departing while the commit has room. Returns true if all are marked.
fn mark_scopes(tx: &mut Transaction<'_>, unit: &UnitName) -> bool {
    let scopes: Vec<RelationId> = tx
        .state
        .scopes_of(unit)
        .filter(|id| tx.state.membership(id, unit) == Some(periapt_host_api::view::Membership::Joined))
        .copied()
        .collect();
    for (index, id) in scopes.iter().enumerate() {
        if index >= SCOPES_PER_STEP {
            return false;
        }
        relation::scope::mark_departing(tx, unit, id);
    }
    true
}

/// Removes a unit that its agent is done with, or that is removed by force. Releases its leadership at once (L-4),
/// then deletes all that belongs to it (L-8) while the commit has room; the worker goes on with the rest.
pub(crate) fn remove(tx: &mut Transaction<'_>, unit: &Arc<Unit>) {
    release_leadership(tx, &unit.name);
    let scopes: Vec<RelationId> = tx.state.scopes_of(&unit.name).take(SCOPES_PER_STEP).copied().collect();
    for id in &scopes {
        relation::scope::leave(tx, &unit.name, id);
    }
    let stored = tx.state.state_of(&unit.name).take(SCOPES_PER_STEP - scopes.len());
    for key in stored.map(|entry| entry.key.clone()).collect::<Vec<_>>() {
        tx.delete(ModelKey::State(key));
    }
    if tx.state.scope_count(&unit.name) > 0 || tx.state.state_of(&unit.name).next().is_some() {
        if unit.life != Life::Dead {
            tx.put(Unit { life: Life::Dead, ports: Vec::new(), ..Unit::clone(unit) });
            tx.add_work(Work::UnitScopes { unit: unit.name.clone() }, None);
        }
        return;
    }
    storage::life::detach_all(tx, &unit.name);
    if tx.state.events_of(&unit.name).is_some() {
        tx.delete(ModelKey::Events(unit.name.clone()));
    }
    if tx.state.workloads_of(&unit.name).is_some() {
        tx.delete(ModelKey::Workloads(unit.name.clone()));
    }
    tx.delete(ModelKey::Unit(unit.name.clone()));
    if tx.state.open_task_count(&unit.name) > 0 {
        tx.add_work(Work::CancelTasks { unit: unit.name.clone() }, None);
    }
    application::end::keep_usage(tx, unit);
    secret::life::forget_owner(tx, &SecretOwner::Unit(unit.name.clone()));
    secret::life::forget_reader(tx, SecretReader::Unit(unit.name.clone()));
    for id in unit.record.relations.keys() {
        relation::life::forget_if_done(tx, id);
    }
    if let Some(machine) = unit.machine
        && tx.state.unit_count_on(&machine) == 0
    {
        // L-5: a machine exists only for its units.
        tx.delete(ModelKey::Machine(machine));
    }
    if let Some(charm) = unit.record.charm {
        charm::life::release(tx, &charm.digest);
    }
    application::end::remove_if_done(tx, unit.name.application());
}

/// Does one step of the worker for a unit with many scopes. Returns true if nothing is left to do.
pub(crate) fn scopes_step(tx: &mut Transaction<'_>, name: &UnitName) -> bool {
    match tx.state.unit(name).cloned() {
        Some(unit) if unit.life == Life::Dying => mark_scopes(tx, name),
        Some(unit) if unit.life == Life::Dead => {
            remove(tx, &unit);
            tx.state.unit(name).is_none()
        }
        _ => true,
    }
}

/// Releases a unit's leadership, so that another unit may claim it at once (D-5).
pub(crate) fn release_leadership(tx: &mut Transaction<'_>, unit: &UnitName) {
    let Some(application) = tx.state.application(unit.application()).cloned() else { return };
    if application.leader.as_ref().is_some_and(|leader| leader.unit == *unit) {
        tx.put(Application { leader: None, ..Application::clone(&application) });
        tx.set_lease(unit.application(), None);
    }
}

/// Does one step of a forced removal: subordinates first, then the unit itself. Returns true if the unit is gone.
pub(crate) fn force_step(tx: &mut Transaction<'_>, name: &UnitName) -> bool {
    let Some(unit) = tx.state.unit(name).cloned() else { return true };
    let subordinate = tx.state.subordinates_of(name).next().cloned();
    match subordinate {
        Some(subordinate) => remove(tx, &subordinate),
        None => remove(tx, &unit),
    }
    tx.state.unit(name).is_none()
}

/// Returns the reasons that delay the removal of a dying unit.
pub(crate) fn waits_for(state: &ModelState, unit: &Unit) -> Vec<String> {
    if unit.life == Life::Alive {
        return Vec::new();
    }
    let mut waits: Vec<String> = state
        .subordinates_of(&unit.name)
        .map(|unit| format!("subordinate {} to be removed", unit.name))
        .collect();
    waits.extend(
        state.storages_of(&unit.name).map(|storage| format!("storage {} to be detached", storage.id)),
    );
    if unit.is_in_error() {
        waits.push("its failed hook to be resolved".to_owned());
    } else if unit.life == Life::Dying {
        waits.push("its agent to run its last hooks".to_owned());
    }
    waits
}
