//! The consequences of each committed hook (`docs/hook-model.md` 1.5).

use periapt_host_api::{
    ApplicationName, UnitName,
    event::{Event, RelationBatch, RelationContext},
    record::{HookStep, Operation, RelationRecord, UnitRecord},
    secret::SecretKey,
};

use crate::{Progress, SeenVersions, Skipped};

/// Applies a committed hook: marks its view as seen, and queues the hook that must follow.
pub(crate) fn commit(progress: &mut Progress, event: &Event, seen: &SeenVersions) {
    let record = &mut progress.record;
    record.operation = Operation::Continue;
    record.begun = None;
    match event {
        Event::Install => record.installed = true,
        Event::Start => {
            record.started = true;
            record.stopped = false;
            record.boot_id.clone_from(&seen.boot_id);
        }
        Event::Stop => {
            record.stopped = true;
            record.started = false;
            record.update_status_due = None;
        }
        Event::Remove => record.removed = true,
        Event::ConfigChanged => {
            record.seen.clone_from(&seen.hashes);
            record.settings_version = Some(seen.settings_version);
            progress.transitions.refresh_addresses = true;
            if !record.started {
                queue(record, Event::Start);
            }
        }
        Event::UpgradeCharm => queue(record, Event::ConfigChanged),
        Event::LeaderSettingsChanged => record.leader_settings_version = Some(seen.leader_settings_version),
        // An action is no hook, so the record ignores it.
        Event::UpdateStatus | Event::LeaderElected | Event::Action { .. } => {}
        Event::Custom { id, .. } => progress.transitions.told_event = Some(*id),
        Event::RelationCreated(context) => with_relation(record, context, |relation| relation.created = true),
        Event::RelationJoined { relation, remote_unit } => {
            with_relation(record, relation, |relation| joined(relation, remote_unit, seen.bag_version));
        }
        Event::RelationChanged { relation: context, remote_unit } => {
            with_relation(record, context, |relation| match remote_unit {
                Some(unit) => unit_changed(relation, unit, seen.bag_version),
                None => application_changed(relation, &context.remote_application, seen.bag_version),
            });
        }
        Event::RelationDeparted { relation, remote_unit, .. } => {
            with_relation(record, relation, |relation| departed(relation, remote_unit));
        }
        Event::RelationBatch { relation: context, batch } => {
            with_relation(record, context, |relation| {
                batch_done(relation, batch, seen);
                if batch.application_changed {
                    application_changed(relation, &context.remote_application, seen.bag_version);
                }
            });
        }
        Event::RelationBroken(context) => {
            record.relations.remove(&context.relation);
            if seen.relation_exists {
                progress.transitions.leave_scope.insert(context.relation);
            }
        }
        Event::StorageAttached(context) => {
            record.storages.insert(context.storage.clone());
        }
        Event::StorageDetaching(context) => {
            record.storages.remove(&context.storage);
            progress.transitions.detach_storage.insert(context.storage.clone());
        }
        Event::SecretChanged(secret) => {
            record.secrets.clone_from(&seen.secrets);
            record.secrets.entry(secret.id).or_default().changed = Some(seen.secret_latest);
        }
        Event::SecretRemove { secret, revision } => {
            record.secrets.clone_from(&seen.secrets);
            record.secrets.entry(secret.id).or_default().obsolete.insert(*revision);
        }
        Event::PebbleReady { .. }
        | Event::PebbleCustomNotice { .. }
        | Event::PebbleCheckFailed { .. }
        | Event::PebbleCheckRecovered { .. } => record.workloads.clone_from(&seen.workloads),
        Event::SecretRotate(secret) => {
            progress.transitions.rotated.insert(secret.id, seen.secret_latest);
        }
        Event::SecretExpired { secret, revision } => {
            progress.transitions.expired.insert(SecretKey { id: secret.id, revision: *revision });
        }
    }
    if let Some(context) = event.relation() {
        with_relation(record, context, |relation| relation.gone = gone_after(event, seen));
    }
}

/// Returns the number of former members, including those that depart in this hook.
fn gone_after(event: &Event, seen: &SeenVersions) -> u64 {
    let departed = match event {
        Event::RelationDeparted { .. } => 1,
        Event::RelationBatch { batch, .. } => u64::try_from(batch.departed.len()).unwrap_or(u64::MAX),
        _ => 0,
    };
    seen.gone.saturating_add(departed)
}

/// Commits a hook without a run after `resolved --no-retry`, with all its consequences (U-28).
pub(crate) fn skipped(record: &UnitRecord, event: &Event, seen: &SeenVersions) -> Progress {
    let mut progress = Progress::after(record);
    commit(&mut progress, event, seen);
    progress.transitions.clear_resolved = true;
    progress.skipped = Some(Skipped::Resolved(event.clone()));
    progress
}

/// Drops a hook that lost its meaning before its run, without consequences (1.4 step 1, U-16).
pub(crate) fn drop_moot(record: &UnitRecord, event: &Event) -> Progress {
    let mut progress = Progress::after(record);
    progress.record.operation = Operation::Continue;
    progress.record.begun = None;
    if let Event::RelationChanged { relation, remote_unit: Some(unit) } = event {
        with_relation(&mut progress.record, relation, |relation| no_longer_pending(relation, unit));
    }
    progress.skipped = Some(Skipped::Moot(event.clone()));
    progress
}

/// Drops a hook about members that must be told in another form, or that has no content left. The unit was told
/// nothing, and the resolver starts afresh.
pub(crate) fn restated(record: &UnitRecord, event: &Event) -> Progress {
    let mut progress = Progress::after(record);
    progress.record.operation = Operation::Continue;
    progress.record.begun = None;
    progress.skipped = Some(Skipped::Moot(event.clone()));
    progress
}

/// Returns the step before a hook that runs again.
pub(crate) fn queued(record: &UnitRecord, event: &Event) -> Progress {
    let mut progress = Progress::after(record);
    queue(&mut progress.record, event.clone());
    progress
}

fn queue(record: &mut UnitRecord, event: Event) {
    record.operation = Operation::Hook { event, step: HookStep::Queued };
}

fn with_relation(
    record: &mut UnitRecord,
    context: &RelationContext,
    change: impl FnOnce(&mut RelationRecord),
) {
    if let Some(relation) = record.relations.get_mut(&context.relation) {
        change(relation);
    }
}

fn joined(relation: &mut RelationRecord, unit: &UnitName, version: u64) {
    relation.members.insert(unit.clone(), version);
    relation.changed_pending = Some(unit.clone());
}

fn unit_changed(relation: &mut RelationRecord, unit: &UnitName, version: u64) {
    if relation.members.contains_key(unit) {
        relation.members.insert(unit.clone(), version);
    }
    no_longer_pending(relation, unit);
}

fn application_changed(relation: &mut RelationRecord, application: &ApplicationName, version: u64) {
    relation.applications.insert(application.clone(), version);
}

fn departed(relation: &mut RelationRecord, unit: &UnitName) {
    relation.members.remove(unit);
    no_longer_pending(relation, unit);
}

/// Applies a batch. Members that joined in it need no later `changed`.
fn batch_done(relation: &mut RelationRecord, batch: &RelationBatch, seen: &SeenVersions) {
    let version = |unit: &UnitName| seen.member_versions.get(unit).copied().unwrap_or(0);
    for unit in &batch.joined {
        relation.members.insert(unit.clone(), version(unit));
    }
    for unit in &batch.changed {
        unit_changed(relation, unit, version(unit));
    }
    for unit in &batch.departed {
        departed(relation, unit);
    }
}

fn no_longer_pending(relation: &mut RelationRecord, unit: &UnitName) {
    if relation.changed_pending.as_ref() == Some(unit) {
        relation.changed_pending = None;
    }
}
