//! Actions: operations, tasks in every state, their messages and results.

use periapt_host_api::{
    ActionOperationId, TaskId,
    action::{TaskMessage, TaskResults, TaskStatus},
};
use periapt_model::{
    changes::RecordBody,
    entity::{ActionOperation, Task},
};

use super::{Named, awkward_text, every, parse, record, time};

pub(crate) fn operations() -> Named<ActionOperation> {
    let operation = ActionOperation {
        id: ActionOperationId(1),
        summary: "backup run on unit-wordpress-10,unit-mysql-0".into(),
        fail: awkward_text(),
        enqueued: time(80),
        tasks: vec![TaskId(2), TaskId(3)],
    };
    vec![("partly-failed", operation)]
}

pub(crate) fn tasks() -> Named<Task> {
    let statuses = every!(TaskStatus {
        "pending": TaskStatus::Pending => TaskStatus::Pending,
        "running": TaskStatus::Running => TaskStatus::Running,
        "aborting": TaskStatus::Aborting => TaskStatus::Aborting,
        "completed": TaskStatus::Completed => TaskStatus::Completed,
        "failed": TaskStatus::Failed => TaskStatus::Failed,
        "cancelled": TaskStatus::Cancelled => TaskStatus::Cancelled,
        "aborted": TaskStatus::Aborted => TaskStatus::Aborted,
    });
    let task = |status: TaskStatus| Task {
        id: TaskId(2),
        operation: ActionOperationId(1),
        unit: parse("wordpress/10"),
        action: "backup".into(),
        parameters: record::status_data(),
        group: (status != TaskStatus::Pending).then(|| "disk".into()),
        status,
        message: awkward_text(),
        enqueued: time(80),
        started: (status != TaskStatus::Pending).then(|| time(81)),
        completed: (!status.is_open()).then(|| time(82)),
        messages: 3,
        message_bytes: 0,
        result_bytes: 1_234,
    };
    let talkative = Task { message_bytes: 16_384, ..task(TaskStatus::Running) };
    let tasks = statuses.into_iter().map(|(name, status)| (name, task(status)));
    tasks.chain([("talkative", talkative)]).collect()
}

pub(crate) fn records() -> Named<RecordBody> {
    let message = TaskMessage { at: time(81), message: awkward_text() };
    let results = TaskResults {
        return_code: -1,
        stdout: awkward_text(),
        stderr: "oh\n".into(),
        values: record::status_data(),
    };
    vec![
        ("message", RecordBody::TaskMessage(message)),
        ("results", RecordBody::TaskResults(Box::new(results))),
    ]
}
