//! Actions that operators asked for: operations and their tasks.

use periapt_host_api::{
    ActionOperationId, TaskId, Timestamp, UnitName,
    action::{Parameters, TaskStatus},
    size::of_json as json_size,
};
use serde::{Deserialize, Serialize};

/// One request to run an action. It goes with the last of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ActionOperation {
    /// Its number.
    pub id: ActionOperationId,
    /// `ACTION run on unit-...`
    pub summary: String,
    /// Why some receivers have no task; empty if all have one.
    pub fail: String,
    /// When it was asked for.
    pub enqueued: Timestamp,
    /// Its tasks; those that were pruned already included.
    pub tasks: Vec<TaskId>,
}

/// One run of an action on one unit. Its messages and results are records, and lie in the store alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Task {
    /// Its number.
    pub id: TaskId,
    /// The operation that it is part of.
    pub operation: ActionOperationId,
    /// Where it runs.
    pub unit: UnitName,
    /// The action.
    pub action: String,
    /// Its parameters, defaults inserted.
    pub parameters: Parameters,
    /// The actions of its machine that it must not run beside; none: it runs beside all.
    pub group: Option<String>,
    /// How far it is.
    pub status: TaskStatus,
    /// For people; empty if there is nothing to say.
    pub message: String,
    /// When it was asked for.
    pub enqueued: Timestamp,
    /// When it began.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub completed: Option<Timestamp>,
    /// How many messages it has sent: who follows it sees by this that there are more.
    pub messages: u32,
    /// Bytes of these messages.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub message_bytes: u64,
    /// Bytes of its results, as JSON.
    pub result_bytes: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a task takes beside its parameters and message, in bytes.
const TASK_BYTES: u64 = 512;

impl Task {
    /// Bytes that it takes in the controller's memory.
    pub(crate) fn memory(&self) -> u64 {
        let texts = json_size(&self.parameters).saturating_add(self.message.len());
        u64::try_from(texts).unwrap_or(u64::MAX).saturating_add(TASK_BYTES)
    }

    /// Bytes of its records.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.result_bytes.saturating_add(self.message_bytes)
    }

    /// The name of the sequence of its records.
    pub fn records(id: TaskId) -> String {
        id.to_string()
    }
}
