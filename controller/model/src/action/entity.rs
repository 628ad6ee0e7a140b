//! Operations, which are requests to run actions, and their tasks.

use periapt_host_api::{
    ActionOperationId, TaskId, Timestamp, UnitName,
    action::{Parameters, TaskStatus},
    size::of_json as json_size,
};
use serde::{Deserialize, Serialize};

/// One request to run an action. It is deleted with the last of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ActionOperation {
    /// The operation's number.
    pub id: ActionOperationId,
    /// `ACTION run on unit-...`
    pub summary: String,
    /// The reasons why some receivers have no task; empty if all have one.
    pub fail: String,
    /// The time of the request.
    pub enqueued: Timestamp,
    /// The tasks, pruned ones included.
    pub tasks: Vec<TaskId>,
}

/// One run of an action on one unit. Its messages and results are records, and only in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Task {
    /// The task's number.
    pub id: TaskId,
    /// The task's operation.
    pub operation: ActionOperationId,
    /// The unit that runs the task.
    pub unit: UnitName,
    /// The action.
    pub action: String,
    /// The parameters, with defaults filled in.
    pub parameters: Parameters,
    /// The execution group: tasks of one group never run at the same time on a machine. None means no restriction.
    pub group: Option<String>,
    /// The progress of the task.
    pub status: TaskStatus,
    /// The message for people; may be empty.
    pub message: String,
    /// The time of the request.
    pub enqueued: Timestamp,
    /// The time of the start.
    pub started: Option<Timestamp>,
    /// The time of the completion.
    pub completed: Option<Timestamp>,
    /// The number of messages sent. Followers see by this number that there are more.
    pub messages: u32,
    /// The bytes of these messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub message_bytes: u64,
    /// The bytes of the results, as JSON.
    pub result_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The bytes that a task takes besides its parameters and message.
const TASK_BYTES: u64 = 512;

impl Task {
    /// Returns the bytes that the task takes in the controller's memory.
    pub(crate) fn memory(&self) -> u64 {
        let texts = json_size(&self.parameters).saturating_add(self.message.len());
        u64::try_from(texts).unwrap_or(u64::MAX).saturating_add(TASK_BYTES)
    }

    /// Returns the bytes of the task's records.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.result_bytes.saturating_add(self.message_bytes)
    }

    /// Returns the name of the sequence of a task's records.
    pub fn records(id: TaskId) -> String {
        id.to_string()
    }
}
