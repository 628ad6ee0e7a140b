//! Actions as operators run them: an *operation* is one request, and each of its *tasks* runs the action once on
//! one unit (`hook-model.md` 1.13).

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

/// An action's parameters: what was given, and the schema's defaults for the rest.
pub type Parameters = Map<String, Value>;

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskStatus {
    /// It waits for its turn.
    Pending,
    /// It runs.
    Running,
    /// It ran, and is to stop.
    Aborting,
    /// It succeeded.
    Completed,
    /// It failed, or said so.
    Failed,
    /// It was cancelled before it ran, or its unit was removed.
    Cancelled,
    /// It was stopped while it ran.
    Aborted,
}

impl TaskStatus {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Aborting,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Aborted,
    ];

    /// Juju's word.
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

    /// Whether it has not ended.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Running | Self::Aborting)
    }

    /// What an operation is whose tasks are these: what one of them still does; else the worst end.
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

/// Why a text is no status of a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no status of a task; there are {names}", names = TaskStatus::ALL.map(TaskStatus::as_str).join(", "))]
pub struct TaskStatusError(String);

/// Where an action is to run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionReceiver {
    /// On this unit.
    Unit(UnitName),
    /// On whichever unit leads the application when the action is asked for.
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

    /// `APPLICATION/NUMBER` or `APPLICATION/leader`.
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
    /// The action.
    pub action: String,
    /// Where, at most [`MAX_RECEIVERS`].
    pub receivers: Vec<ActionReceiver>,
    /// Its parameters, at most [`MAX_PARAMETER_BYTES`] as JSON.
    #[serde(default)]
    pub parameters: Parameters,
    /// Beside what it runs, where whoever asks says otherwise than the charm.
    #[serde(default, skip_serializing_if = "Turns::is_empty")]
    pub turns: Turns,
}

/// Beside what an action runs on its machine (`hook-model.md` 1.3): what is not said is as the action has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Turns {
    /// Whether it may run beside others. Without a group of its own, one that may not waits for all of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<bool>,
    /// The group whose actions run one after the other, whatever `parallel` says; 1 to 128 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_group: Option<String>,
}

impl Turns {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What became of a request to run an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EnqueuedOperation {
    /// The operation, also if none of its tasks could be enqueued.
    pub id: ActionOperationId,
    /// One for each receiver, in order.
    pub tasks: Vec<EnqueuedTask>,
}

/// What became of it for one receiver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EnqueuedTask {
    /// As it was named.
    pub receiver: ActionReceiver,
    /// The task and its unit, or why there is none.
    pub task: CommandResult<(TaskId, UnitName)>,
}

/// How a task ended, as the agent that ran it tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskEnd {
    /// Which.
    pub task: TaskId,
    /// How.
    pub outcome: TaskOutcome,
    /// For people; empty if there is nothing to say.
    pub message: String,
    /// What it left.
    pub results: TaskResults,
}

/// The ways in which an action that was begun ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskOutcome {
    /// It succeeded.
    Completed,
    /// It failed, or said so.
    Failed,
    /// It was stopped.
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

/// What an action leaves behind (U-44).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskResults {
    /// As a process's exit code; 0 is success.
    pub return_code: i32,
    /// What the handler wrote to its standard output, cut at a bound.
    pub stdout: String,
    /// What it wrote to its standard error, cut at a bound.
    pub stderr: String,
    /// What it set by action-set: texts, and objects of such.
    pub values: Map<String, Value>,
}

impl TaskResults {
    /// All of it as one object, as Juju shows it.
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
    /// When.
    pub at: Timestamp,
    /// The text.
    pub message: String,
}

/// A task, as `show-task` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TaskDetails {
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
    /// Its messages so far, as far as one answer has room.
    pub log: Vec<TaskMessage>,
    /// What it left, once it has ended.
    pub results: Option<TaskResults>,
    /// From where the next page of messages and results goes on; none: this is all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An operation, as `show-operation` shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct OperationDetails {
    /// Its number.
    pub id: ActionOperationId,
    /// `ACTION run on unit-...`
    pub summary: String,
    /// Derived from its tasks.
    pub status: TaskStatus,
    /// When it was asked for.
    pub enqueued: Timestamp,
    /// Why some units have no task of it; empty if all have.
    pub fail: String,
    /// Its tasks, by number.
    pub tasks: Vec<TaskDetails>,
}

impl OperationDetails {
    /// When the first of its tasks began.
    pub fn started(&self) -> Option<Timestamp> {
        self.tasks.iter().filter_map(|task| task.started).min()
    }

    /// When the last of its tasks ended; none while one is open.
    pub fn completed(&self) -> Option<Timestamp> {
        match self.tasks.iter().any(|task| task.status.is_open()) {
            true => None,
            false => self.tasks.iter().filter_map(|task| task.completed).max(),
        }
    }
}

/// What a watch of an operation tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TaskNews {
    /// A message of a task.
    Message {
        /// Whose.
        task: TaskId,
        /// Which.
        message: TaskMessage,
    },
    /// A task has ended; nothing more is told of it.
    Ended(Box<TaskDetails>),
}

/// Which operations are wanted, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct OperationQuery {
    /// Only of these actions; none: of all.
    pub actions: Vec<String>,
    /// Only on units of these applications.
    pub applications: Vec<ApplicationName>,
    /// Only on these units.
    pub units: Vec<UnitName>,
    /// Only in these states.
    pub status: Vec<TaskStatus>,
    /// At most this many; none: 50.
    pub limit: Option<u32>,
    /// After so many that match.
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
