//! Reads of operations and tasks: their entities in the model, and their records.

use periapt_host_api::{
    ModelUuid, Refusal, Revision, TaskId,
    action::{
        OperationDetails, OperationQuery, Parameters, TaskDetails, TaskMessage, TaskResults, TaskStatus,
    },
};
use periapt_model::{
    ModelState, RecordBody, RecordKind,
    entity::{ActionOperation, Task},
};
use periapt_store::{Order, RecordPosition, Store, codec, key};

use crate::records::unreadable;

/// The bytes of records in one answer, and in one turn of a watch.
pub(crate) const PAGE_BYTES: usize = 1 << 20;
/// The number of records in one read. A page may exceed its bound by so many records.
const AT_A_TIME: usize = 16;

/// The bytes after which a list ends.
const LIST_BYTES: usize = 16 << 20;
/// The bytes of a task or an operation in a list, besides its texts.
const OUTLINE_BYTES: usize = 512;

/// The number of operations in a list: the default and the maximum.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 1_000;

/// The records of a task after a position.
#[derive(Debug, Default)]
pub(crate) struct TaskRecords {
    pub(crate) log: Vec<TaskMessage>,
    pub(crate) results: Option<TaskResults>,
    /// The position of the last record that was read.
    pub(crate) after: Option<RecordPosition>,
    /// True if there may be more records.
    pub(crate) more: bool,
}

/// Reads the records of a task after a position, up to `room` bytes, and subtracts the bytes read.
pub(crate) async fn records(
    store: &dyn Store,
    model: &ModelUuid,
    task: TaskId,
    after: Option<RecordPosition>,
    room: &mut usize,
) -> Result<TaskRecords, Refusal> {
    let prefix = key::record_prefix(model, RecordKind::Task, &Task::records(task));
    let mut found = TaskRecords { after, ..TaskRecords::default() };
    while *room > 0 {
        let order = Order::OldestFirst { after: found.after };
        let page = store.records(&prefix, order, AT_A_TIME).await.map_err(|error| unreadable(&error))?;
        for record in &page {
            found.after = Some(record.position);
            *room = room.saturating_sub(record.body.len());
            match codec::body(record) {
                Ok(RecordBody::TaskMessage(message)) => found.log.push(message),
                Ok(RecordBody::TaskResults(results)) => found.results = Some(*results),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, %task, "a record of a task cannot be read"),
            }
        }
        if page.len() < AT_A_TIME {
            return Ok(found);
        }
    }
    found.more = true;
    Ok(found)
}

/// Returns a task with its messages and results after a position, up to `room` bytes.
pub(crate) async fn task(
    store: &dyn Store,
    model: &ModelUuid,
    task: &Task,
    after: Option<RecordPosition>,
    room: &mut usize,
) -> Result<TaskDetails, Refusal> {
    let TaskRecords { log, results, after, more } = records(store, model, task.id, after, room).await?;
    let next = more.then(|| cursor(after));
    Ok(TaskDetails { log, results, next, parameters: task.parameters.clone(), ..outline(task) })
}

/// Returns the end of a page of a task's records, as the reader sends it back.
pub(crate) fn cursor(after: Option<RecordPosition>) -> String {
    let RecordPosition { revision, index } = after.unwrap_or_default();
    format!("{}.{index}", revision.0)
}

/// Parses the end of a page.
///
/// # Errors
/// The text is not the end of a page.
pub(crate) fn parse_cursor(text: &str) -> Result<RecordPosition, Refusal> {
    let position = || {
        let (revision, index) = text.split_once('.')?;
        Some(RecordPosition { revision: Revision(revision.parse().ok()?), index: index.parse().ok()? })
    };
    position().ok_or_else(|| Refusal::bad_request(format!("query after={text}: no page ended there")))
}

/// Returns a task without its parameters, messages and results.
fn outline(task: &Task) -> TaskDetails {
    TaskDetails {
        id: task.id,
        operation: task.operation,
        unit: task.unit.clone(),
        action: task.action.clone(),
        parameters: Parameters::new(),
        status: task.status,
        message: task.message.clone(),
        enqueued: task.enqueued,
        started: task.started,
        completed: task.completed,
        log: Vec::new(),
        results: None,
        next: None,
    }
}

/// Returns an operation with its present tasks. Records that exceed one answer are read task by task.
pub(crate) async fn operation(
    store: &dyn Store,
    state: &ModelState,
    operation: &ActionOperation,
) -> Result<OperationDetails, Refusal> {
    let (mut tasks, mut room) = (Vec::new(), PAGE_BYTES);
    for found in operation.tasks.iter().filter_map(|id| state.task(id)) {
        tasks.push(task(store, &state.model().uuid, found, None, &mut room).await?);
    }
    Ok(details(operation, tasks))
}

fn details(operation: &ActionOperation, tasks: Vec<TaskDetails>) -> OperationDetails {
    OperationDetails {
        id: operation.id,
        summary: operation.summary.clone(),
        status: TaskStatus::of_operation(tasks.iter().map(|task| task.status)),
        enqueued: operation.enqueued,
        fail: operation.fail.clone(),
        tasks,
    }
}

/// Returns the operations that match a query, the newest first. The tasks have no messages and results. Each first
/// task has its parameters, up to the bytes of one page in all.
pub(crate) fn list(state: &ModelState, query: &OperationQuery) -> Vec<OperationDetails> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let all = state.operations().rev().map(|operation| {
        let tasks = operation.tasks.iter().filter_map(|id| state.task(id));
        details(operation, tasks.map(|task| outline(task)).collect())
    });
    let admitted = all.filter(|operation| admits(query, operation));
    let (mut parameters_left, mut left) = (PAGE_BYTES, LIST_BYTES);
    let wanted = admitted.skip(to_usize(query.offset)).take(to_usize(limit));
    let fitting = wanted.take_while(|operation| {
        let fits = left > 0;
        left = left.saturating_sub(listed_bytes(operation));
        fits
    });
    fitting
        .map(|mut operation| {
            let first = operation.tasks.first_mut();
            if let Some((shown, task)) =
                first.and_then(|shown| state.task(&shown.id).map(|task| (shown, task)))
            {
                let bytes = serde_json::to_vec(&task.parameters).map_or(usize::MAX, |bytes| bytes.len());
                if let Some(rest) = parameters_left.checked_sub(bytes) {
                    parameters_left = rest;
                    shown.parameters.clone_from(&task.parameters);
                }
            }
            operation
        })
        .collect()
}

fn listed_bytes(operation: &OperationDetails) -> usize {
    let own = operation.summary.len() + operation.fail.len() + OUTLINE_BYTES;
    operation.tasks.iter().fold(own, |sum, task| sum + task.message.len() + OUTLINE_BYTES)
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn admits(query: &OperationQuery, operation: &OperationDetails) -> bool {
    fn any<T: PartialEq>(wanted: &[T], mut has: impl FnMut(&T) -> bool) -> bool {
        wanted.is_empty() || wanted.iter().any(&mut has)
    }
    let tasks = &operation.tasks;
    any(&query.actions, |action| tasks.iter().any(|task| task.action == *action))
        && any(&query.applications, |name| tasks.iter().any(|task| task.unit.application() == name))
        && any(&query.units, |unit| tasks.iter().any(|task| task.unit == *unit))
        && any(&query.status, |status| operation.status == *status)
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{StoreId, Timestamp};
    use periapt_model::{Changes, RecordAppend};
    use periapt_store::{Batch, MemoryStore};

    use super::*;

    /// Returns a store with so many messages of one task, each of 16 KiB.
    async fn store_with(model: ModelUuid, task: TaskId, messages: usize) -> MemoryStore {
        let at = Timestamp::UNIX_EPOCH;
        let message = |number: usize| {
            let message = format!("{number} {}", "x".repeat(16 << 10));
            let body = RecordBody::TaskMessage(TaskMessage { at, message });
            RecordAppend { model, entity: Task::records(task), at, body }
        };
        let changes = Changes { records: (0..messages).map(message).collect(), ..Changes::default() };
        let store = MemoryStore::new(StoreId(uuid::Uuid::nil()));
        let batch = codec::batch(Revision(0), [codec::Writes::of(&changes).unwrap()]);
        store.commit(Batch { expected: store.load().await.unwrap().revision, ..batch }).await.unwrap();
        store
    }

    #[tokio::test]
    async fn records_are_read_in_pages_that_are_bounded_in_bytes() {
        let (model, task) = (ModelUuid(uuid::Uuid::nil()), TaskId(7));
        let store = store_with(model, task, 500).await;
        let (mut read, mut after) = (0, None);
        loop {
            let mut room = PAGE_BYTES;
            let page = records(&store, &model, task, after, &mut room).await.unwrap();
            let bytes: usize = page.log.iter().map(|message| message.message.len()).sum();
            assert!(bytes <= PAGE_BYTES + AT_A_TIME * (17 << 10), "{bytes}");
            let first = page.log.first().map(|message| message.message.starts_with(&format!("{read} ")));
            assert_ne!(first, Some(false), "none is left out or told twice");
            read += page.log.len();
            if !page.more {
                break;
            }
            after = Some(parse_cursor(&cursor(page.after)).unwrap());
        }
        assert_eq!(read, 500);
        let mut none = 0;
        let nothing = records(&store, &model, task, None, &mut none).await.unwrap();
        assert!(nothing.log.is_empty() && nothing.more, "who has no room is told that there is more");
        assert_eq!(parse_cursor(&cursor(None)).unwrap(), RecordPosition::default());
        for text in ["", "1", "1.x", "-1.0", "1.2.3"] {
            assert!(parse_cursor(text).is_err(), "{text}");
        }
    }
}
