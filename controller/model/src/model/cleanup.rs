//! The destruction of models: applications, units and storage first, then the model itself.

use std::sync::Arc;

use periapt_host_api::{
    status::Life,
    storage::{StorageEnd, UnitStorage},
};

use crate::{
    application,
    entity::{Model, ModelKey, RemoteApplication, RemoteSource, Storage},
    offer,
    root::ModelState,
    storage,
    transaction::Transaction,
    unit,
};

/// The number of entities that deletions leave to the rest of the commit.
const RESERVE: usize = 20;

/// Returns true if the next step would change something.
pub(crate) fn has_step(state: &ModelState) -> bool {
    let model = state.model();
    if model.life == Life::Dead {
        return state.forgotten_storages().next().is_none();
    }
    model.life != Life::Alive
        && (is_empty(state)
            || state.applications().any(|application| application.life == Life::Alive)
            || state.remote_applications().any(|remote| is_consumed(remote))
            || leftovers(state).next().is_some())
}

/// Returns true if no entity with a life of its own is left.
fn is_empty(state: &ModelState) -> bool {
    state.applications().next().is_none()
        && state.unit_count() == 0
        && state.machines().next().is_none()
        && state.relations().next().is_none()
        && state.storages().next().is_none()
        && state.remote_applications().next().is_none()
}

/// Returns true for an alive consumed offer. The consumers of this model's own offers are removed with their
/// relations.
fn is_consumed(remote: &RemoteApplication) -> bool {
    remote.life == Life::Alive && matches!(remote.source, RemoteSource::Offer { .. })
}

/// Returns storage that no unit has and that is not being removed yet.
fn leftovers(state: &ModelState) -> impl Iterator<Item = &Arc<Storage>> {
    state.storages().filter(|storage| storage.end.is_none() && storage.attachment.is_none())
}

/// Destroys the applications, then deletes the rest, and the model itself last.
pub(crate) fn clean_up(tx: &mut Transaction<'_>) {
    if tx.state.model().life == Life::Alive {
        return;
    }
    let alive = tx.state.applications().filter(|application| application.life == Life::Alive);
    let alive: Vec<_> = alive.take(tx.room()).cloned().collect();
    for application in alive {
        if !tx.has_room(50) {
            return;
        }
        // The destruction of another application may have removed this one.
        if let Some(application) = tx.state.application(&application.name).cloned() {
            application::life::destroy(tx, &application, None, UnitStorage::Detach);
        }
    }
    let consumed: Vec<Arc<RemoteApplication>> =
        tx.state.remote_applications().filter(|remote| is_consumed(remote)).cloned().collect();
    for remote in consumed {
        if !tx.has_room(50) {
            return;
        }
        offer::life::destroy(tx, &remote, None);
    }
    let end = tx.state.model().storage_end.unwrap_or(StorageEnd::Destroy);
    let leftovers: Vec<Arc<Storage>> = leftovers(&tx.state).take(tx.room()).cloned().collect();
    for storage in leftovers {
        if !tx.has_room(RESERVE) {
            return;
        }
        storage::life::remove(tx, &storage, end);
    }
    if is_empty(&tx.state) {
        delete_rest(tx);
    }
}

/// Does one step of a forced destruction: removes units and storage while the commit has room. Returns true if none
/// is left.
pub(crate) fn force_step(tx: &mut Transaction<'_>) -> bool {
    while tx.state.model().life != Life::Alive && tx.has_room(unit::life::REMOVE_ROOM) {
        let unit = tx.state.units().next().map(|unit| unit.name.clone());
        let storage = tx.state.storages().next().cloned();
        match (unit, storage) {
            (Some(unit), _) => {
                unit::life::force_step(tx, &unit);
            }
            (None, Some(storage)) => {
                let end = tx.state.model().storage_end.unwrap_or(StorageEnd::Destroy);
                storage::life::forget(tx, &storage, end);
            }
            (None, None) => return true,
        }
    }
    let nothing = tx.state.unit_count() == 0 && tx.state.storages().next().is_none();
    tx.state.model().life == Life::Alive || nothing
}

/// Deletes the rest while the commit has room, and the model itself with the last of it. If agents still have storage
/// to delete, the model stays dead until they have done so.
fn delete_rest(tx: &mut Transaction<'_>) {
    let room = tx.room().saturating_sub(RESERVE);
    let keys: Vec<ModelKey> = rest(&tx.state).take(room).collect();
    let last = keys.len() < room;
    for key in keys {
        tx.delete(key);
    }
    if last && tx.state.forgotten_storages().next().is_none() {
        tx.delete(ModelKey::Model);
    } else if last {
        let life_since = tx.now();
        tx.put(Model { life: Life::Dead, life_since, ..tx.state.model().clone() });
    }
}

/// Returns the keys of entities without a life of their own. Counters come last, because pending work still takes
/// numbers. The iterator is lazy: a step reads only as many as it deletes.
fn rest(state: &ModelState) -> impl Iterator<Item = ModelKey> {
    let goes = |key: &ModelKey| match key {
        // Storage is deleted when its agent has deleted the directory.
        ModelKey::Storage(_) => false,
        ModelKey::Runner(agent) => state.storages_at(agent).next().is_none(),
        ModelKey::Sequence(_) => false,
        _ => true,
    };
    let counters = state.sequences().map(|sequence| ModelKey::Sequence(sequence.key.clone()));
    state.keys().filter(goes).chain(counters)
}

/// Returns the reasons that delay the removal of a dying model.
pub(crate) fn waits_for(state: &ModelState) -> Vec<String> {
    if state.model().life == Life::Alive {
        return Vec::new();
    }
    let counts = [
        (state.applications().count(), "application"),
        (state.unit_count(), "unit"),
        (state.machines().count(), "machine"),
        (state.storages().count(), "storage instance"),
        (state.remote_applications().count(), "saas application"),
    ];
    counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}{} to be removed", if count == 1 { "" } else { "s" }))
        .collect()
}
