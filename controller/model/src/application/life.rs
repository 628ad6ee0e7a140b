//! The removal of applications (L-2, R-10).

use std::sync::Arc;

use periapt_host_api::{ApplicationName, UnitName, command::Force, status::Life, storage::UnitStorage};

use super::end::remove_if_done;
use crate::{
    entity::{Application, ModelKey, Relation, Unit, Work, WorkId},
    relation,
    root::ModelState,
    transaction::Transaction,
    unit,
};

/// The most entities that the end of one relation, or the first step of a unit's end, writes in a commit.
const STEP: usize = 35;

/// Sets an application and its relations dying. The worker destroys the units.
pub(crate) fn destroy(
    tx: &mut Transaction<'_>,
    application: &Arc<Application>,
    force: Option<Force>,
    storage: UnitStorage,
) {
    let name = &application.name;
    if application.life == Life::Alive {
        tx.put(Application { life: Life::Dying, ..Application::clone(application) });
        drop_planned_units(tx, name);
        crate::offer::life::withdraw_offers(tx, name);
    }
    if remove_if_done(tx, name) {
        return;
    }
    // The application may be removed with its last relation.
    destroy_relations(tx, name);
    let first = application.life == Life::Alive;
    // A repeated request without force adds nothing to the removal under way.
    let more = force.is_some() || storage == UnitStorage::Destroy;
    if tx.state.application(name).is_some() && (first || more) {
        let application = name.clone();
        tx.add_work(Work::DestroyApplication { application, force, storage, after: None }, None);
    }
}

/// Does one step of the removal: destroys relations, then the units after `after`. Returns true if all are destroyed,
/// or a new work item has the rest.
pub(crate) fn destroy_step(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    force: Option<Force>,
    storage: UnitStorage,
    after: Option<UnitName>,
) -> bool {
    let dying = tx.state.application(name).is_some_and(|application| application.life != Life::Alive);
    if !dying {
        return true;
    }
    if !destroy_relations(tx, name) {
        return false;
    }
    let wanted =
        |unit: &&Arc<Unit>| unit.life == Life::Alive || force.is_some() || storage == UnitStorage::Destroy;
    let next = |state: &ModelState, after: Option<&UnitName>| {
        state.units_of_behind(name, after).find(wanted).cloned()
    };
    let rest = unit::life::destroy_each(tx, after, force, storage, next);
    if let Some(unit::life::ResumeAfter(after)) = rest {
        let application = name.clone();
        tx.add_work(Work::DestroyApplication { application, force, storage, after }, None);
    }
    // Without units, the application is removed with its last relation.
    remove_if_done(tx, name);
    true
}

/// Destroys an application's relations while the commit has room. Returns true if none is left alive.
fn destroy_relations(tx: &mut Transaction<'_>, name: &ApplicationName) -> bool {
    let alive: Vec<Arc<Relation>> =
        tx.state.relations_of(name).filter(|relation| relation.life == Life::Alive).cloned().collect();
    for relation in alive {
        if !tx.has_room(STEP) {
            return false;
        }
        relation::life::destroy(tx, &relation, None);
    }
    true
}

/// Drops the work items for units that have numbers and are not created yet.
fn drop_planned_units(tx: &mut Transaction<'_>, name: &ApplicationName) {
    let planned: Vec<WorkId> = tx
        .state
        .work()
        .filter(|item| matches!(&item.work, Work::CreateUnits { application, .. } if application == name))
        .map(|item| item.id)
        .collect();
    for id in planned {
        tx.delete(ModelKey::Work(id));
    }
}

/// Returns the reasons that delay the removal of a dying application.
pub(crate) fn waits_for(state: &ModelState, application: &Application) -> Vec<String> {
    if application.life == Life::Alive {
        return Vec::new();
    }
    let mut waits = Vec::new();
    let mut units = state.units_of(&application.name).map(|unit| &unit.name);
    let shown: Vec<String> = units.by_ref().take(5).map(ToString::to_string).collect();
    match (shown.len(), units.count()) {
        (0, _) => {}
        (1, _) => waits.push(format!("unit {} to be removed", shown.join(", "))),
        (_, 0) => waits.push(format!("units {} to be removed", shown.join(", "))),
        (_, more) => waits.push(format!("units {} and {more} more to be removed", shown.join(", "))),
    }
    for relation in state.relations_of(&application.name).filter(|relation| relation.life != Life::Dead) {
        waits.push(format!("relation {} ({}) to be removed", relation.id, relation.describe()));
    }
    waits
}
