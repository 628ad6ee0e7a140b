//! The rules about storage: attaching, detaching, waiting (`docs/hook-model.md` 1.7 rule 13).

use periapt_host_api::{
    StorageId, Timestamp,
    event::{Event, StorageContext},
    record::{HookStep, Operation, UnitRecord},
    status::Life,
    view::{StorageAttachment, StorageView},
};

use crate::{Decision, Progress, resolve_input::ResolveInput};

/// Runs the hooks of storage that comes or goes. A unit that is not installed waits until all its storage
/// exists (1.8, L01); an installed unit never waits (L06).
pub(super) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    if !applies(record) {
        return None;
    }
    drop_unreported(input).or_else(|| hook(input, now)).or_else(|| {
        let waits =
            !record.installed && input.alive() && input.storages().any(|(storage, _)| !storage.provisioned);
        waits.then_some(Decision::Wait { wake_at: None })
    })
}

/// Returns true at rest and before a queued install hook, once the unit has a charm.
fn applies(record: &UnitRecord) -> bool {
    match &record.operation {
        Operation::Continue => record.charm.is_some(),
        Operation::Hook { step: HookStep::Queued, .. } => !record.installed,
        Operation::Hook { step: HookStep::Failed(_), .. } | Operation::DeployFailed { .. } => false,
    }
}

/// Detaches without a hook: storage that leaves before the charm was told of it (U-42), and all storage of a
/// unit that never installed (U-40). It also forgets storage that was removed by force.
fn drop_unreported(input: &ResolveInput<'_>) -> Option<Decision> {
    let record = input.record();
    let mut progress = Progress::after(record);
    for (storage, attachment) in input.storages() {
        let told = record.storages.contains(&storage.id);
        if is_going(input, attachment) && (!told || !record.installed) {
            progress.record.storages.remove(&storage.id);
            progress.transitions.detach_storage.insert(storage.id.clone());
        }
    }
    let gone: Vec<&StorageId> = record.storages.iter().filter(|id| input.attachment(id).is_none()).collect();
    for id in &gone {
        progress.record.storages.remove(*id);
    }
    let something = !gone.is_empty() || !progress.transitions.detach_storage.is_empty();
    something.then(|| Decision::Commit(Box::new(progress)))
}

fn hook(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let event = input.storages().find_map(|(storage, attachment)| {
        let told = record.storages.contains(&storage.id);
        let context = || context(storage, attachment);
        match (told, is_going(input, attachment)) {
            (true, true) => Some(Event::StorageDetaching(context())),
            (false, false) if storage.provisioned => Some(Event::StorageAttached(context())),
            _ => None,
        }
    })?;
    Some(input.run(event, now))
}

fn is_going(input: &ResolveInput<'_>, attachment: &StorageAttachment) -> bool {
    !input.alive() || attachment.life != Life::Alive
}

fn context(storage: &StorageView, attachment: &StorageAttachment) -> StorageContext {
    StorageContext { storage: storage.id.clone(), location: attachment.location.clone() }
}

/// Returns true if a storage hook is moot, because the unit does not have the storage any more.
pub(super) fn is_moot(input: &ResolveInput<'_>, event: &Event) -> bool {
    event.storage().is_some_and(|context| input.attachment(&context.storage).is_none())
}
