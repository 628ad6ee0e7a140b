//! The changes of custom events in commits (decision 0017).

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, EventId, Refusal,
    commit::UnitCommit,
    pending::{
        EventNameError, MAX_AFTER_MS, MAX_CONDITIONS, MAX_DATA_BYTES, MAX_PENDING, MAX_PENDING_BYTES,
        MIN_AFTER_MS, PendingEvent, check_name,
    },
};

use crate::{
    entity::{PendingEvents, Unit},
    transaction::{Transaction, json_size},
};

/// Removes the event that was delivered and those that the hook cancelled, then adds the new ones: all, or a refusal
/// that names the exceeded bound. An operator may have cancelled an event before; that is no error.
pub(crate) fn apply(tx: &mut Transaction<'_>, unit: &Unit, commit: &UnitCommit) -> Result<(), Refusal> {
    let (changes, told) = (&commit.effects.events, commit.transitions.told_event);
    if changes.is_empty() && told.is_none() {
        return Ok(());
    }
    let refused = |code, text: String| Refusal::new(code, text).about(format!("unit {}", unit.name));
    let mut pending = match tx.state.events_of(&unit.name) {
        Some(pending) => PendingEvents::clone(pending),
        None => PendingEvents { unit: unit.name.clone(), next: EventId::default(), events: BTreeMap::new() },
    };
    for gone in changes.cancel.iter().chain(&told) {
        pending.events.remove(gone);
    }
    for (id, event) in &changes.emit {
        // Numbers may be skipped: a hook can schedule and cancel an event.
        if *id < pending.next {
            let text = format!("the unit's next event has number {}, not {id}", pending.next);
            return Err(refused(ErrorCode::BadRequest, text));
        }
        check(event).map_err(|error| refused(ErrorCode::BadRequest, error.to_string()))?;
        pending.next = EventId(id.0.saturating_add(1));
        pending.events.insert(*id, event.clone());
    }
    if pending.events.len() > MAX_PENDING {
        let text = format!(
            "the unit would wait for {} events, at most {MAX_PENDING} are allowed",
            pending.events.len()
        );
        return Err(refused(ErrorCode::QuotaExceeded, text));
    }
    let bytes = json_size(&pending.events);
    if !changes.emit.is_empty() && bytes > MAX_PENDING_BYTES {
        let text =
            format!("the unit's events would take {bytes} bytes, at most {MAX_PENDING_BYTES} are allowed");
        return Err(refused(ErrorCode::QuotaExceeded, text));
    }
    tx.put(pending);
    Ok(())
}

/// The reason why the controller refuses an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum EventError {
    #[error(transparent)]
    Name(#[from] EventNameError),
    #[error("an event's data takes {0} bytes, at most {MAX_DATA_BYTES} are allowed")]
    LongData(usize),
    #[error("an event has {0} conditions, at most {MAX_CONDITIONS} are allowed")]
    ManyConditions(usize),
    #[error("an event is put off by {MIN_AFTER_MS} to {MAX_AFTER_MS} milliseconds")]
    Time,
    #[error("an event needs a time or a condition")]
    NeverDue,
}

/// Refuses an invalid event. The hook's own run checks the same; this check is for other callers.
fn check(event: &PendingEvent) -> Result<(), EventError> {
    check_name(&event.name)?;
    if event.data.len() > MAX_DATA_BYTES {
        return Err(EventError::LongData(event.data.len()));
    }
    if event.conditions.len() > MAX_CONDITIONS {
        return Err(EventError::ManyConditions(event.conditions.len()));
    }
    if event.after_ms.is_some_and(|after| !(MIN_AFTER_MS..=MAX_AFTER_MS).contains(&after)) {
        return Err(EventError::Time);
    }
    if event.after_ms.is_none() && event.conditions.is_empty() {
        return Err(EventError::NeverDue);
    }
    Ok(())
}
