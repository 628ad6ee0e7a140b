//! Destroyed models: all in them goes, then they.

use periapt_host_api::status::Life;

use crate::{entity::ModelKey, life, root::ModelState, transaction::Transaction};

/// How many entities are left for what the commit writes beside the deletions.
const RESERVE: usize = 20;

/// Whether the next step would change something.
pub(crate) fn has_step(state: &ModelState) -> bool {
    let model = state.model();
    model.life != Life::Alive
        && (is_empty(state) || state.applications().any(|application| application.life == Life::Alive))
}

/// Whether nothing is left that has a life of its own.
fn is_empty(state: &ModelState) -> bool {
    state.applications().next().is_none()
        && state.unit_count() == 0
        && state.machines().next().is_none()
        && state.relations().next().is_none()
}

/// Sends applications on their way, then deletes what is left, the model itself last.
pub(crate) fn wind_up(tx: &mut Transaction<'_>) {
    if tx.state.model().life == Life::Alive {
        return;
    }
    let alive: Vec<_> =
        tx.state.applications().filter(|application| application.life == Life::Alive).cloned().collect();
    for application in alive {
        if !tx.has_room(50) {
            return;
        }
        // The end of another may have been the end of this one.
        if let Some(application) = tx.state.application(&application.name).cloned() {
            life::application::destroy(tx, &application, None);
        }
    }
    if is_empty(&tx.state) {
        delete_rest(tx);
    }
}

/// One step of a forced destruction: removes units as far as the commit has room; true when none is left.
pub(crate) fn force_step(tx: &mut Transaction<'_>) -> bool {
    while tx.state.model().life != Life::Alive && tx.has_room(life::unit::REMOVE_ROOM) {
        let Some(unit) = tx.state.units().next().map(|unit| unit.name.clone()) else { return true };
        life::unit::force_step(tx, &unit);
    }
    tx.state.model().life == Life::Alive || tx.state.unit_count() == 0
}

fn delete_rest(tx: &mut Transaction<'_>) {
    let mut rest: Vec<ModelKey> = tx.state.work().map(|item| ModelKey::Work(item.id)).collect();
    for relation in tx.state.relations_with_bags() {
        rest.extend(tx.state.bags(relation).map(|bag| ModelKey::Bag(bag.key.clone())));
    }
    rest.extend(tx.state.charms().map(|charm| ModelKey::Charm(charm.digest)));
    rest.extend(tx.state.tasks().map(|task| ModelKey::Task(task.id)));
    rest.extend(tx.state.operations().map(|operation| ModelKey::ActionOperation(operation.id)));
    rest.extend(tx.state.runners().map(|runner| ModelKey::Runner(runner.agent.clone())));
    rest.extend(tx.state.sequences().map(|sequence| ModelKey::Sequence(sequence.key.clone())));
    for key in rest {
        if !tx.has_room(RESERVE) {
            return;
        }
        tx.delete(key);
    }
    tx.delete(ModelKey::Model);
}

/// What a dying model waits for before it can go.
pub(crate) fn waits_for(state: &ModelState) -> Vec<String> {
    if state.model().life == Life::Alive {
        return Vec::new();
    }
    let counts = [
        (state.applications().count(), "application"),
        (state.unit_count(), "unit"),
        (state.machines().count(), "machine"),
    ];
    counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}{} to be gone", if count == 1 { "" } else { "s" }))
        .collect()
}
