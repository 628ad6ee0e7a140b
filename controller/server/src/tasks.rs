//! Reading operations and tasks: what the model has of them, and their records.

use std::sync::Arc;

use periapt_host_api::{
    ModelUuid, Refusal, TaskId,
    action::{OperationDetails, OperationQuery, TaskDetails, TaskMessage, TaskResults, TaskStatus},
};
use periapt_model::{
    ModelState, RecordBody, RecordKind,
    entity::{ActionOperation, Task},
};
use periapt_store::{Order, RecordPosition, Store, codec, key};

use crate::records::unreadable;

/// How many records are read at a time.
const PAGE: usize = 256;

/// How many operations a list has where nobody says, and at most.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 1_000;

/// What a task's records say, from a position on.
#[derive(Debug, Default)]
pub(crate) struct TaskRecords {
    pub(crate) log: Vec<TaskMessage>,
    pub(crate) results: Option<TaskResults>,
    /// Behind the last that was read.
    pub(crate) after: Option<RecordPosition>,
}

/// Reads the records of a task behind a position.
pub(crate) async fn records(
    store: &Arc<dyn Store>,
    model: &ModelUuid,
    task: TaskId,
    after: Option<RecordPosition>,
) -> Result<TaskRecords, Refusal> {
    let prefix = key::record_prefix(model, RecordKind::Task, &Task::records(task));
    let mut found = TaskRecords { after, ..TaskRecords::default() };
    loop {
        let order = Order::OldestFirst { after: found.after };
        let page = store.records(&prefix, order, PAGE).await.map_err(|error| unreadable(&error))?;
        for record in &page {
            found.after = Some(record.position);
            match codec::body(record) {
                Ok(RecordBody::TaskMessage(message)) => found.log.push(message),
                Ok(RecordBody::TaskResults(results)) => found.results = Some(*results),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, %task, "a record of a task cannot be read"),
            }
        }
        if page.len() < PAGE {
            return Ok(found);
        }
    }
}

/// A task with its messages and results.
pub(crate) async fn task(
    store: &Arc<dyn Store>,
    model: &ModelUuid,
    task: &Task,
) -> Result<TaskDetails, Refusal> {
    let records = records(store, model, task.id, None).await?;
    Ok(TaskDetails { log: records.log, results: records.results, ..outline(task) })
}

/// A task without its messages and results.
fn outline(task: &Task) -> TaskDetails {
    TaskDetails {
        id: task.id,
        operation: task.operation,
        unit: task.unit.clone(),
        action: task.action.clone(),
        parameters: task.parameters.clone(),
        status: task.status,
        message: task.message.clone(),
        enqueued: task.enqueued,
        started: task.started,
        completed: task.completed,
        log: Vec::new(),
        results: None,
    }
}

/// An operation with its tasks, as far as they are kept.
pub(crate) async fn operation(
    store: &Arc<dyn Store>,
    state: &ModelState,
    operation: &ActionOperation,
) -> Result<OperationDetails, Refusal> {
    let mut tasks = Vec::new();
    for found in operation.tasks.iter().filter_map(|id| state.task(id)) {
        tasks.push(task(store, &state.model().uuid, found).await?);
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

/// The operations that a query admits, the newest first; their tasks without messages and results.
pub(crate) fn list(state: &ModelState, query: &OperationQuery) -> Vec<OperationDetails> {
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let all = state.operations().rev().map(|operation| {
        let tasks =
            operation.tasks.iter().filter_map(|id| state.task(id)).map(|task| outline(task)).collect();
        details(operation, tasks)
    });
    let admitted = all.filter(|operation| admits(query, operation));
    admitted.skip(to_usize(query.offset)).take(to_usize(limit)).collect()
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
