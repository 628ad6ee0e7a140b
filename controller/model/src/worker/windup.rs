//! Destroyed models: all in them goes, then they.

use std::sync::Arc;

use periapt_host_api::{
    status::Life,
    storage::{StorageEnd, UnitStorage},
};

use crate::{
    entity::{ModelKey, Storage},
    life,
    root::ModelState,
    transaction::Transaction,
};

/// How many entities are left for what the commit writes beside the deletions.
const RESERVE: usize = 20;

/// Whether the next step would change something.
pub(crate) fn has_step(state: &ModelState) -> bool {
    let model = state.model();
    model.life != Life::Alive
        && (is_empty(state)
            || state.applications().any(|application| application.life == Life::Alive)
            || leftovers(state).next().is_some())
}

/// Whether nothing is left that has a life of its own.
fn is_empty(state: &ModelState) -> bool {
    state.applications().next().is_none()
        && state.unit_count() == 0
        && state.machines().next().is_none()
        && state.relations().next().is_none()
        && state.storages().next().is_none()
}

/// Storage that no unit has, and that nobody has sent on its way yet.
fn leftovers(state: &ModelState) -> impl Iterator<Item = &Arc<Storage>> {
    state.storages().filter(|storage| storage.end.is_none() && storage.attachment.is_none())
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
            life::application::destroy(tx, &application, None, UnitStorage::Detach);
        }
    }
    let end = tx.state.model().storage_end.unwrap_or(StorageEnd::Destroy);
    let leftovers: Vec<Arc<Storage>> = leftovers(&tx.state).cloned().collect();
    for storage in leftovers {
        if !tx.has_room(RESERVE) {
            return;
        }
        life::storage::remove(tx, &storage, end);
    }
    if is_empty(&tx.state) {
        delete_rest(tx);
    }
}

/// One step of a forced destruction: removes units and storage as far as the commit has room; true when none is left.
pub(crate) fn force_step(tx: &mut Transaction<'_>) -> bool {
    while tx.state.model().life != Life::Alive && tx.has_room(life::unit::REMOVE_ROOM) {
        let unit = tx.state.units().next().map(|unit| unit.name.clone());
        let storage = tx.state.storages().next().map(|storage| storage.id.clone());
        match (unit, storage) {
            (Some(unit), _) => {
                life::unit::force_step(tx, &unit);
            }
            (None, Some(storage)) => tx.delete(ModelKey::Storage(storage)),
            (None, None) => return true,
        }
    }
    let nothing = tx.state.unit_count() == 0 && tx.state.storages().next().is_none();
    tx.state.model().life == Life::Alive || nothing
}

fn delete_rest(tx: &mut Transaction<'_>) {
    let mut rest: Vec<ModelKey> = tx.state.work().map(|item| ModelKey::Work(item.id)).collect();
    for relation in tx.state.relations_with_bags() {
        rest.extend(tx.state.bags(relation).map(|bag| ModelKey::Bag(bag.key.clone())));
    }
    for id in tx.state.secrets_with_parts() {
        rest.extend(tx.state.secret_contents(&id).map(|it| ModelKey::SecretContent(id, it.revision)));
        rest.extend(tx.state.secret_expiries(&id).map(|it| ModelKey::SecretExpiry(id, it.revision)));
        rest.extend(tx.state.secret_consumers(&id).map(|it| ModelKey::SecretConsumer(id, it.unit.clone())));
    }
    rest.extend(tx.state.secrets().map(|secret| ModelKey::Secret(secret.id)));
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
        (state.storages().count(), "storage instance"),
    ];
    counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}{} to be gone", if count == 1 { "" } else { "s" }))
        .collect()
}
