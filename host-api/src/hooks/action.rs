//! Actions as operators run them: an *operation* is one request, and each of its *tasks* runs the action once on
//! one unit (`docs/hook-model.md` 1.13).

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ActionOperationId, ApplicationName, NameError, TaskId, Timestamp, UnitName, command::CommandResult,
};

/// The most units that one operation runs on: all its tasks are written in one commit.
pub const MAX_RECEIVERS: usize = 90;

/// The most bytes of one request's parameters, as JSON: each task has a copy, which its agent holds in memory.
pub const MAX_PARAMETER_BYTES: usize = 64 << 10;

/// An action's parameters: those that the operator gave, and the schema's defaults for the rest.
pub type Parameters = Map<String, Value>;

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// A task that waits for its turn.
    Pending,
    /// A task whose action runs.
    Running,
    /// A task whose action runs and is to stop.
    Aborting,
    /// A task whose action succeeded.
    Completed,
    /// A task whose action failed or called action-fail.
    Failed,
    /// A task that was cancelled before it ran, or whose unit was removed.
    Cancelled,
    /// A task that was stopped while it ran.
    Aborted,
}

impl TaskStatus {
    /// All statuses.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Aborting,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Aborted,
    ];

    /// Returns Juju's word for the status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Aborting => "aborting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Aborted => "aborted",
        }
    }

    /// Returns true while the task has not ended.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::Aborting)
    }

    /// Returns the status of an operation with these tasks: that of a task that has not ended, or else the worst end.
    pub fn of_operation(tasks: impl IntoIterator<Item = Self>) -> Self {
        const ORDER: [TaskStatus; 7] = [
            TaskStatus::Running,
            TaskStatus::Aborting,
            TaskStatus::Pending,
            TaskStatus::Failed,
            TaskStatus::Aborted,
            TaskStatus::Cancelled,
            TaskStatus::Completed,
        ];
        let tasks: Vec<Self> = tasks.into_iter().collect();
        ORDER.into_iter().find(|status| tasks.contains(status)).unwrap_or(Self::Completed)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TaskStatus {
    type Err = TaskStatusError;

    fn from_str(text: &str) -> Result<Self, TaskStatusError> {
        let known = Self::ALL.into_iter().find(|status| status.as_str() == text);
        known.ok_or_else(|| TaskStatusError(text.to_owned()))
    }
}

/// A text that is no status of a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid task status {0:?}; known are {names}", names = TaskStatus::ALL.map(TaskStatus::as_str).join(", "))]
pub struct TaskStatusError(String);

/// The unit that is to run an action.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionReceiver {
    /// The unit with this name.
    Unit(UnitName),
    /// The unit that leads the application when the operator runs the action.
    Leader(ApplicationName),
}

impl fmt::Display for ActionReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(unit) => unit.fmt(f),
            Self::Leader(application) => write!(f, "{application}/leader"),
        }
    }
}

impl FromStr for ActionReceiver {
    type Err = NameError;

    /// Reads `APPLICATION/NUMBER` or `APPLICATION/leader`.
    fn from_str(text: &str) -> Result<Self, NameError> {
        match text.strip_suffix("/leader") {
            Some(application) => ApplicationName::new(application).map(Self::Leader),
            None => text.parse().map(Self::Unit),
        }
    }
}

/// A request to run an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EnqueueOperation {
    /// The name of the action.
    pub action: String,
    /// The units that run the action, at most [`MAX_RECEIVERS`].
    pub receivers: Vec<ActionReceiver>,
    /// The action's parameters, at most [`MAX_PARAMETER_BYTES`] as JSON.
    #[serde(default)]
    pub parameters: Parameters,
    /// The request's own rules for running beside other actions, in place of the charm's.
    #[serde(default, skip_serializing_if = "ActionConcurrency::is_empty")]
    pub turns: ActionConcurrency,
}

/// Rules for running beside other actions on the machine (`docs/hook-model.md` 1.3). For each unset field, the charm's
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ActionConcurrency {
    /// True if the action may run beside others. All actions of a machine with false and without an execution group
    /// run one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// The group whose actions run one after the other, whatever `parallel` says; 1 to 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_group: Option<String>,
}

impl ActionConcurrency {
    /// Returns true if no rule is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The result of a request to run an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EnqueuedOperation {
    /// The operation's number. The operation exists even if none of its tasks could be enqueued.
    pub id: ActionOperationId,
    /// One result for each receiver, in the order of the request.
    pub tasks: Vec<EnqueuedTask>,
}

/// The result of the request for one receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EnqueuedTask {
    /// The receiver as the request named it.
    pub receiver: ActionReceiver,
    /// The task and its unit, or the reason that there is no task.
    pub task: CommandResult<(TaskId, UnitName)>,
}

/// The end of a task, as the agent that ran the task reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskEnd {
    /// The number of the task.
    pub task: TaskId,
    /// The way in which the action ended.
    pub outcome: TaskOutcome,
    /// A message for people; may be empty.
    pub message: String,
    /// The action's results.
    pub results: TaskResults,
}

/// The ways in which an action that was begun can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskOutcome {
    /// The action succeeded.
    Completed,
    /// The action failed or called action-fail.
    Failed,
    /// The agent stopped the action.
    Aborted,
}

impl From<TaskOutcome> for TaskStatus {
    fn from(outcome: TaskOutcome) -> Self {
        match outcome {
            TaskOutcome::Completed => Self::Completed,
            TaskOutcome::Failed => Self::Failed,
            TaskOutcome::Aborted => Self::Aborted,
        }
    }
}

/// The results of an action (U-44).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskResults {
    /// The exit code, as of a process; 0 is success.
    pub return_code: i32,
    /// The handler's standard output, cut at a bound.
    pub stdout: String,
    /// The handler's standard error, cut at a bound.
    pub stderr: String,
    /// The values of action-set: texts, and objects of texts.
    pub values: Map<String, Value>,
}

impl TaskResults {
    /// Returns all results as one object, as Juju shows them.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut all = self.values.clone();
        all.insert("return-code".to_owned(), self.return_code.into());
        all.insert("stdout".to_owned(), self.stdout.clone().into());
        all.insert("stderr".to_owned(), self.stderr.clone().into());
        all
    }
}

/// A message of a running action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskMessage {
    /// The time of the message.
    pub at: Timestamp,
    /// The text.
    pub message: String,
}

/// A task, as `show-task` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskDetails {
    /// The task's number.
    pub id: TaskId,
    /// The operation that the task is part of.
    pub operation: ActionOperationId,
    /// The unit that runs the task.
    pub unit: UnitName,
    /// The name of the action.
    pub action: String,
    /// The action's parameters, with defaults inserted.
    pub parameters: Parameters,
    /// The task's status.
    pub status: TaskStatus,
    /// A message for people; may be empty.
    pub message: String,
    /// The time at which the controller enqueued the task.
    pub enqueued: Timestamp,
    /// The time at which the action began.
    pub started: Option<Timestamp>,
    /// The time at which the task ended.
    pub completed: Option<Timestamp>,
    /// The action's messages so far, as many as one answer holds.
    pub log: Vec<TaskMessage>,
    /// The action's results, once the task has ended.
    pub results: Option<TaskResults>,
    /// The token of the next page of messages and results. `None` means that this page is the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An operation, as `show-operation` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OperationDetails {
    /// The operation's number.
    pub id: ActionOperationId,
    /// `ACTION run on unit-...`
    pub summary: String,
    /// The operation's status, derived from its tasks.
    pub status: TaskStatus,
    /// The time at which the controller enqueued the operation.
    pub enqueued: Timestamp,
    /// The reason that some units have no task; empty if all have one.
    pub fail: String,
    /// The operation's tasks, by number.
    pub tasks: Vec<TaskDetails>,
}

impl OperationDetails {
    /// Returns the time at which the first task began.
    pub fn started(&self) -> Option<Timestamp> {
        self.tasks.iter().filter_map(|task| task.started).min()
    }

    /// Returns the time at which the last task ended. Returns `None` while a task is open.
    pub fn completed(&self) -> Option<Timestamp> {
        match self.tasks.iter().any(|task| task.status.is_open()) {
            true => None,
            false => self.tasks.iter().filter_map(|task| task.completed).max(),
        }
    }
}

/// A change that a watch of an operation reports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskUpdate {
    /// A message of a task.
    Message {
        /// The task.
        task: TaskId,
        /// The message.
        message: TaskMessage,
    },
    /// The end of a task. The watch reports nothing more about this task.
    Ended(Box<TaskDetails>),
}

/// A filter for operations. The answer lists the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct OperationQuery {
    /// The actions whose operations match; empty means all.
    pub actions: Vec<String>,
    /// The applications on whose units the operations ran; empty means all.
    pub applications: Vec<ApplicationName>,
    /// The units on which the operations ran; empty means all.
    pub units: Vec<UnitName>,
    /// The statuses that match; empty means all.
    pub status: Vec<TaskStatus>,
    /// The most operations in the answer. `None` means 50.
    pub limit: Option<u32>,
    /// The number of matching operations to skip.
    pub offset: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_is_a_unit_or_an_applications_leader() {
        for text in ["mysql/0", "mysql/leader", "my-sql/12"] {
            assert_eq!(text.parse::<ActionReceiver>().unwrap().to_string(), text);
        }
        for bad in ["mysql", "mysql/", "/leader", "mysql/Leader", "backup"] {
            assert!(bad.parse::<ActionReceiver>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_operation_is_what_its_tasks_still_do_or_the_worst_end() {
        use TaskStatus::{Aborting, Cancelled, Completed, Failed, Pending, Running};
        for (tasks, expected) in [
            (vec![Completed, Running, Failed], Running),
            (vec![Completed, Aborting], Aborting),
            (vec![Completed, Pending], Pending),
            (vec![Completed, Failed, Cancelled], Failed),
            (vec![Completed, Cancelled], Cancelled),
            (vec![Completed, Completed], Completed),
        ] {
            assert_eq!(TaskStatus::of_operation(tasks.clone()), expected, "{tasks:?}");
        }
    }

    #[test]
    fn statuses_are_read_by_their_names() {
        for status in TaskStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert!("done".parse::<TaskStatus>().unwrap_err().to_string().contains("pending, running"));
    }
}
