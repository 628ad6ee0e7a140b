//! The life of storage instances (`docs/hook-model.md` 5.8, U-42, L-6).

use std::sync::Arc;

use periapt_host_api::{
    ErrorCode, Refusal, StorageId, StorageName, UnitName,
    charm::{CharmMeta, StorageMeta},
    settings::{ModelConfig, SettingKey},
    status::Life,
    storage::{DEFAULT_POOL, MAX_PER_UNIT, StorageDirective, StorageDirectives, StorageEnd, mebibytes},
    view::StorageAttachment,
};

use crate::{
    entity::{Application, ModelKey, SequenceKey, Storage},
    root::ModelState,
    transaction::Transaction,
};

/// A number of instances of one storage, to be made.
#[derive(Debug, Clone)]
pub(crate) struct StorageRequest<'a> {
    pub(crate) name: StorageName,
    meta: &'a StorageMeta,
    pool: String,
    size: u64,
    pub(crate) count: u32,
}

/// Returns an instance that is not forgotten.
pub(crate) fn find(tx: &Transaction<'_>, id: &StorageId) -> Result<Arc<Storage>, Refusal> {
    tx.state.storage(id).filter(|storage| !storage.forgotten).cloned().ok_or_else(|| {
        Refusal::not_found(format!("storage {:?} not found", id.to_string())).about(format!("storage {id}"))
    })
}

impl<'a> StorageRequest<'a> {
    /// Returns the name of the storage.
    pub(crate) fn name(&self) -> &StorageName {
        &self.name
    }

    /// Returns the same with another count.
    pub(crate) fn counting(&self, count: u32) -> Self {
        Self { count, ..self.clone() }
    }

    /// Combines a charm's declaration with a directive.
    pub(crate) fn of(name: &StorageName, meta: &'a StorageMeta, directive: &StorageDirective) -> Self {
        Self {
            name: name.clone(),
            meta,
            pool: directive.pool.clone().unwrap_or_else(|| DEFAULT_POOL.to_owned()),
            size: directive.size.unwrap_or_else(|| meta.default_size()),
            count: directive.count_for_new_unit(meta.count.min),
        }
    }
}

/// Returns the storage that each new unit of an application gets.
pub(crate) fn of_new_unit<'a>(
    meta: &'a CharmMeta,
    directives: &StorageDirectives,
) -> Vec<StorageRequest<'a>> {
    let none = StorageDirective::default();
    let wanted = meta
        .storage
        .iter()
        .map(|(name, storage)| StorageRequest::of(name, storage, directives.get(name).unwrap_or(&none)));
    wanted.filter(|wanted| wanted.count > 0).collect()
}

/// Refuses directives that the charm's storage cannot meet. `present` returns the number of a unit's present
/// instances.
pub(crate) fn check(
    meta: &CharmMeta,
    directives: &StorageDirectives,
    present: impl Fn(&StorageName) -> u32,
) -> Result<(), Refusal> {
    for (name, directive) in directives {
        let (charm, store) = (&meta.name, name.as_str());
        let Some(storage) = meta.storage.get(name) else {
            return Err(Refusal::not_found(format!("charm {charm:?} has no store called {store:?}")));
        };
        let wrong =
            |code, text: String| Err(Refusal::new(code, format!("charm {charm:?} store {store:?}: {text}")));
        if let Some(pool) = directive.pool.as_ref().filter(|pool| *pool != DEFAULT_POOL) {
            return wrong(ErrorCode::NotFound, format!("pool {pool:?} not found; there is {DEFAULT_POOL:?}"));
        }
        if let Some(size) = directive.size.filter(|size| *size < storage.minimum_size) {
            let (least, size) = (mebibytes(storage.minimum_size), mebibytes(size));
            return wrong(
                ErrorCode::BadRequest,
                format!("minimum storage size is {least}, {size} specified"),
            );
        }
        if directive.count.is_none() && directive.size.is_none() {
            continue;
        }
        let count = directive.count_for_new_unit(storage.count.min).saturating_add(present(name));
        if count < storage.count.min {
            let least = storage.count.min;
            return wrong(ErrorCode::BadRequest, format!("{least} instances required, {count} specified"));
        }
        if let Some(most) = storage.count.max.filter(|most| count > *most) {
            let text = format!("at most {most} instances supported, {count} specified");
            return wrong(ErrorCode::QuotaExceeded, text);
        }
    }
    Ok(())
}

/// Refuses storage whose size comes from the charm alone and exceeds the model's limit for charms. Only an operator's
/// directive may take more of an agent's disk. `own` has the storage without a size directive.
pub(crate) fn check_sizes<'a>(
    model: &ModelConfig,
    meta: &CharmMeta,
    own: impl IntoIterator<Item = (&'a StorageName, &'a StorageMeta)>,
) -> Result<(), Refusal> {
    let most = u64::from(model.storage_default_max_size);
    let found = own.into_iter().find(|(_, storage)| storage.default_size() > most);
    let Some((name, storage)) = found else { return Ok(()) };
    let (charm, store, setting) = (&meta.name, name.as_str(), SettingKey::StorageDefaultMaxSize.as_str());
    let (size, most) = (mebibytes(storage.default_size()), mebibytes(most));
    Err(Refusal::new(
        ErrorCode::QuotaExceeded,
        format!(
            "charm {charm:?} store {store:?}: it wants at least {size}, and {setting} lets charms take {most}; \
             give its size, as in {store}={size}, or raise the setting"
        ),
    ))
}

/// Returns the storage of a charm that no directive gives a size.
pub(crate) fn unsized_by<'a>(
    meta: &'a CharmMeta,
    directives: &'a StorageDirectives,
) -> impl Iterator<Item = (&'a StorageName, &'a StorageMeta)> {
    let is_given = |name: &StorageName| directives.get(name).is_some_and(|given| given.size.is_some());
    meta.storage.iter().filter(move |(name, _)| !is_given(name))
}

/// Refuses more instances than a unit may have.
pub(crate) fn check_total(count: u32) -> Result<(), Refusal> {
    match count <= MAX_PER_UNIT {
        true => Ok(()),
        false => Err(Refusal::new(
            ErrorCode::QuotaExceeded,
            format!("a unit would have {count} instances of storage, at most {MAX_PER_UNIT} are allowed"),
        )),
    }
}

/// Returns the number of a unit's instances of one storage.
pub(crate) fn count_of(state: &ModelState, unit: &UnitName, name: &StorageName) -> u32 {
    let count = state.storages_of(unit).filter(|storage| storage.id.name() == name).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Returns the number of a unit's instances of all storage.
pub(crate) fn total_of(state: &ModelState, unit: &UnitName) -> u32 {
    u32::try_from(state.storages_of(unit).count()).unwrap_or(u32::MAX)
}

/// Creates instances for a unit. Its agent provisions them.
pub(crate) fn make(
    tx: &mut Transaction<'_>,
    unit: &UnitName,
    wanted: &StorageRequest<'_>,
) -> Result<Vec<StorageId>, Refusal> {
    let first = tx.take_numbers(SequenceKey::Storage, wanted.count)?;
    let ids = (first..first.saturating_add(wanted.count)).map(|number| {
        let id = StorageId::new(wanted.name.clone(), number);
        tx.put(Storage {
            id: id.clone(),
            pool: wanted.pool.clone(),
            size: wanted.size,
            agent: None,
            attachment: Some(attachment(unit, &id, wanted.meta)),
            end: None,
            detachments: 0,
            forgotten: false,
            failure: None,
            no_room: None,
            since: tx.now(),
        });
        id
    });
    Ok(ids.collect())
}

/// Returns the attachment of an instance to a unit, from the charm's declaration.
pub(crate) fn attachment(unit: &UnitName, id: &StorageId, meta: &StorageMeta) -> StorageAttachment {
    StorageAttachment {
        unit: unit.clone(),
        life: Life::Alive,
        location: meta.location_of(id),
        read_only: meta.read_only,
    }
}

/// Begins the detachment of an instance from its unit.
pub(crate) fn begin_detach(tx: &mut Transaction<'_>, storage: &Arc<Storage>) {
    let mut storage = Storage::clone(storage);
    if let Some(attachment) = storage.attachment.as_mut().filter(|attachment| attachment.life == Life::Alive)
    {
        attachment.life = Life::Dying;
        storage.since = tx.now();
        tx.put(storage);
    }
}

/// Ends a detachment. An instance that was never provisioned, or is released, is deleted at once; one to be destroyed
/// is deleted after its agent has deleted the directory.
pub(crate) fn detached(tx: &mut Transaction<'_>, storage: &Arc<Storage>) {
    if storage.agent.is_none() || storage.end == Some(StorageEnd::Release) {
        tx.delete(ModelKey::Storage(storage.id.clone()));
    } else {
        let since = tx.now();
        let detachments = storage.detachments.saturating_add(1);
        tx.put(Storage { attachment: None, detachments, since, ..Storage::clone(storage) });
    }
}

/// Detaches all storage from a unit that is removed.
pub(crate) fn detach_all(tx: &mut Transaction<'_>, unit: &UnitName) {
    let storages: Vec<Arc<Storage>> = tx.state.storages_of(unit).cloned().collect();
    for storage in storages {
        detached(tx, &storage);
    }
}

/// Marks all storage of a unit as to be destroyed after the detachment.
pub(crate) fn destroy_all(tx: &mut Transaction<'_>, unit: &UnitName) {
    let storages: Vec<Arc<Storage>> = tx.state.storages_of(unit).cloned().collect();
    for storage in storages {
        tx.put(Storage { end: Some(StorageEnd::Destroy), ..Storage::clone(&storage) });
    }
}

/// Removes an instance: at once if it is not attached and has no directory to delete.
pub(crate) fn remove(tx: &mut Transaction<'_>, storage: &Arc<Storage>, end: StorageEnd) {
    let since = tx.now();
    let storage = Arc::new(Storage { end: Some(end), since, ..Storage::clone(storage) });
    tx.put(Storage::clone(&storage));
    if storage.attachment.is_some() {
        begin_detach(tx, &storage);
    } else {
        detached(tx, &storage);
    }
}

/// Ends the wait of a forced removal or detachment, for the unit's hook or for the agent that deletes the directory.
/// Force holds for one detachment only: if the unit has detached the storage since then, nothing happens.
pub(crate) fn force_step(tx: &mut Transaction<'_>, id: &StorageId, detachment: Option<u32>) {
    let Some(storage) = tx.state.storage(id).cloned() else { return };
    if detachment.is_some_and(|detachment| detachment != storage.detachments) {
        return;
    }
    if storage.end.is_some() && detachment.is_none() {
        forget(tx, &storage, StorageEnd::Destroy);
    } else if storage.attachment.as_ref().is_some_and(|attachment| attachment.life != Life::Alive) {
        detached(tx, &storage);
    }
}

/// Removes an instance without waiting for its agent. The agent deletes the directory when it reconnects. `end`
/// applies if the instance was not being removed yet.
pub(crate) fn forget(tx: &mut Transaction<'_>, storage: &Arc<Storage>, end: StorageEnd) {
    let end = storage.end.unwrap_or(end);
    if storage.agent.is_none() || end == StorageEnd::Release {
        tx.delete(ModelKey::Storage(storage.id.clone()));
        return;
    }
    let since = tx.now();
    tx.put(Storage { attachment: None, end: Some(end), forgotten: true, since, ..Storage::clone(storage) });
}

/// Creates the storage that an application's charm requires for each unit, while the commit has room. Returns true if
/// all units have it.
pub(crate) fn provide_step(
    tx: &mut Transaction<'_>,
    application: &Arc<Application>,
) -> Result<bool, Refusal> {
    let meta = tx.charm_meta(application)?;
    let units: Vec<UnitName> = tx
        .state
        .units_of(&application.name)
        .filter(|unit| unit.life == Life::Alive)
        .map(|unit| unit.name.clone())
        .collect();
    for unit in units {
        for (name, storage) in &meta.storage {
            let missing = storage.count.min.saturating_sub(count_of(&tx.state, &unit, name));
            if missing == 0 || total_of(&tx.state, &unit).saturating_add(missing) > MAX_PER_UNIT {
                continue;
            }
            if !tx.has_room(MAX_PER_UNIT as usize + 4) {
                return Ok(false);
            }
            let directive = application.storage.get(name).cloned().unwrap_or_default();
            let wanted =
                StorageRequest::of(name, storage, &StorageDirective { count: Some(missing), ..directive });
            make(tx, &unit, &wanted)?;
        }
    }
    Ok(true)
}

/// Returns the reasons that delay the removal of an instance.
pub(crate) fn waits_for(storage: &Storage) -> Vec<String> {
    match (&storage.attachment, &storage.agent) {
        (Some(attachment), _) if attachment.life != Life::Alive || storage.end.is_some() => {
            vec![format!("unit {} to detach it", attachment.unit)]
        }
        (None, Some(agent)) if storage.is_to_be_deleted() => {
            vec![format!("agent {agent} to delete its files")]
        }
        _ => Vec::new(),
    }
}
