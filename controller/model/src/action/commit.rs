//! Tasks that a unit began and completed, and their messages.

use periapt_host_api::{
    ErrorCode, Refusal, TaskId, Timestamp, UnitName,
    action::{TaskEnd, TaskMessage, TaskStatus},
};

use super::command;
use crate::{
    entity::Task,
    root::changes::RecordBody,
    transaction::{Transaction, json_size},
};

/// The most bytes of one task's results, as JSON.
const MAX_RESULT_BYTES: usize = 1 << 20;

/// The most bytes of one message: of a running action, or of its end.
const MAX_MESSAGE: usize = 16 << 10;

/// The most messages of one task that the controller keeps. The host lets a charm send no more.
const MAX_MESSAGES: u32 = 1_000;

/// The bytes that a message takes besides its text.
const MESSAGE_BYTES: u64 = 64;

/// Begins a task. Refuses a task that is no longer pending, for example cancelled.
pub(crate) fn begin(tx: &mut Transaction<'_>, unit: &UnitName, id: TaskId) -> Result<(), Refusal> {
    let task = own_task(tx, unit, id).filter(|task| task.status == TaskStatus::Pending);
    let Some(task) = task else {
        return Err(Refusal::conflict(format!("task \"{id}\" is not pending")).about(format!("unit {unit}")));
    };
    let started = Some(tx.now());
    tx.put(Task { status: TaskStatus::Running, started, ..task });
    Ok(())
}

/// Completes a task.
pub(crate) fn end(tx: &mut Transaction<'_>, unit: &UnitName, end: &TaskEnd) -> Result<(), Refusal> {
    let Some(task) = own_task(tx, unit, end.task).filter(|task| task.status.is_open()) else {
        return Ok(());
    };
    let bytes = json_size(&end.results);
    if bytes > MAX_RESULT_BYTES {
        let text = format!("the action's results take {bytes} bytes, at most {MAX_RESULT_BYTES} are allowed");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("unit {unit}")));
    }
    let now = tx.now();
    let results = Box::new(end.results.clone());
    tx.record(Task::records(task.id), now, RecordBody::TaskResults(results));
    let result_bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let message = crate::commit::text::truncate(&end.message, MAX_MESSAGE);
    command::end(tx, Task { result_bytes, ..task }, end.outcome.into(), message);
    Ok(())
}

/// Records a message of a running action. Drops a message that comes after the end, or for another unit's task.
pub(crate) fn message(tx: &mut Transaction<'_>, unit: &UnitName, id: TaskId, at: Timestamp, text: &str) {
    let takes_more = |task: &Task| task.status.is_open() && task.messages < MAX_MESSAGES;
    let Some(task) = own_task(tx, unit, id).filter(takes_more) else { return };
    let message = TaskMessage { at, message: crate::commit::text::truncate(text, MAX_MESSAGE).to_owned() };
    let bytes = u64::try_from(message.message.len()).unwrap_or(u64::MAX).saturating_add(MESSAGE_BYTES);
    tx.record(Task::records(id), at, RecordBody::TaskMessage(message));
    let message_bytes = task.message_bytes.saturating_add(bytes);
    tx.put(Task { messages: task.messages.saturating_add(1), message_bytes, ..task });
}

fn own_task(tx: &Transaction<'_>, unit: &UnitName, id: TaskId) -> Option<Task> {
    tx.state.task(&id).filter(|task| task.unit == *unit).map(|task| Task::clone(task))
}
