//! Changes: work in progress, as tasks.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    limits::PodLimits,
    message::{ChangeId, TaskId},
    word::words,
};

words! {
    /// The state of a task, and of a change.
    pub(crate) enum Status {
        /// Waits for ever: a task before it has failed, or it was aborted.
        Hold = "Hold",
        /// Waits for its turn.
        Do = "Do",
        /// Runs.
        Doing = "Doing",
        /// Has succeeded.
        Done = "Done",
        /// Is being stopped.
        Abort = "Abort",
        /// Has failed.
        Error = "Error",
    }
}

impl Status {
    /// Returns true for a state that does not change any more.
    pub(crate) fn is_ready(self) -> bool {
        matches!(self, Self::Hold | Self::Done | Self::Error)
    }
}

words! {
    /// The kind of a change.
    pub(crate) enum ChangeKind {
        Start = "start",
        Stop = "stop",
        Restart = "restart",
        Replan = "replan",
        Autostart = "autostart",
        Exec = "exec",
        PerformCheck = "perform-check",
        RecoverCheck = "recover-check",
    }
}

/// The work of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    /// Starts a service.
    Start(String),
    /// Stops a service.
    Stop(String),
    /// Runs a command.
    Exec,
    /// Runs a check.
    Check(String),
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Task {
    pub(crate) id: TaskId,
    pub(crate) work: Work,
    pub(crate) kind: &'static str,
    pub(crate) summary: String,
    pub(crate) status: Status,
    pub(crate) log: Vec<String>,
    pub(crate) done: u64,
    pub(crate) total: u64,
    pub(crate) began: Timestamp,
    pub(crate) ready: Option<Timestamp>,
    pub(crate) data: Map<String, Value>,
    /// The tasks that must be done before.
    pub(crate) after: BTreeSet<TaskId>,
    /// The error in words, of a failed task.
    pub(crate) error: Option<String>,
}

/// A change.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    pub(crate) id: ChangeId,
    pub(crate) kind: ChangeKind,
    pub(crate) summary: String,
    pub(crate) tasks: Vec<Task>,
    pub(crate) began: Timestamp,
    pub(crate) ready: Option<Timestamp>,
    pub(crate) data: Map<String, Value>,
    /// The state that the last notice told.
    pub(crate) told: Option<Status>,
}

impl Change {
    /// Returns the state: that of what still runs, else failed, else held back, else done.
    pub(crate) fn status(&self) -> Status {
        [Status::Abort, Status::Doing, Status::Do, Status::Error, Status::Hold]
            .into_iter()
            .find(|status| self.tasks.iter().any(|task| task.status == *status))
            .unwrap_or(Status::Done)
    }

    /// Returns the errors of all failed tasks, if the change has failed.
    pub(crate) fn error(&self) -> Option<String> {
        let failed: Vec<String> = self
            .tasks
            .iter()
            .filter_map(|task| Some(format!("- {} ({})", task.summary, task.error.as_ref()?)))
            .collect();
        (self.status() == Status::Error && !failed.is_empty())
            .then(|| format!("cannot perform the following tasks:\n{}", failed.join("\n")))
    }

    /// Returns the change as the API shows it.
    pub(crate) fn shown(&self) -> Value {
        let mut shown = json!({
            "id": self.id.to_string(),
            "kind": self.kind,
            "summary": self.summary,
            "status": self.status(),
            "tasks": self.tasks.iter().map(Task::shown).collect::<Vec<_>>(),
            "ready": self.ready.is_some(),
            "spawn-time": self.began.to_string(),
        });
        if let Some(shown) = shown.as_object_mut() {
            if let Some(ready) = self.ready {
                shown.insert("ready-time".to_owned(), ready.to_string().into());
            }
            if let Some(error) = self.error() {
                shown.insert("err".to_owned(), error.into());
            }
            if !self.data.is_empty() {
                shown.insert("data".to_owned(), self.data.clone().into());
            }
        }
        shown
    }

    /// Returns true if the change is about a service.
    pub(crate) fn concerns(&self, service: &str) -> bool {
        self.tasks
            .iter()
            .any(|task| matches!(&task.work, Work::Start(name) | Work::Stop(name) if name == service))
    }
}

impl Task {
    fn shown(&self) -> Value {
        let mut shown = json!({
            "id": self.id.to_string(),
            "kind": self.kind,
            "summary": self.summary,
            "status": self.status,
            "progress": { "label": "", "done": self.done, "total": self.total },
            "spawn-time": self.began.to_string(),
        });
        if let Some(shown) = shown.as_object_mut() {
            if !self.log.is_empty() {
                shown.insert("log".to_owned(), self.log.clone().into());
            }
            if let Some(ready) = self.ready {
                shown.insert("ready-time".to_owned(), ready.to_string().into());
            }
            if !self.data.is_empty() {
                shown.insert("data".to_owned(), self.data.clone().into());
            }
        }
        shown
    }

    /// Adds a line to the log, and drops the oldest above the bound.
    pub(crate) fn write(&mut self, date: Timestamp, level: &str, text: &str, limits: &PodLimits) {
        let mut end = text.len().min(limits.log_line);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = text.get(..end).unwrap_or_default();
        self.log.push(format!("{date} {level} {text}"));
        let over = self.log.len().saturating_sub(limits.task_log);
        self.log.drain(..over);
    }
}

/// A task that is not numbered yet.
#[derive(Debug)]
pub(crate) struct NewTask {
    pub(crate) work: Work,
    pub(crate) kind: &'static str,
    pub(crate) summary: String,
    /// The places of tasks that must be done before.
    pub(crate) after: Vec<usize>,
}

/// All changes that are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Changes {
    changes: BTreeMap<ChangeId, Change>,
    /// The change of each task.
    tasks: BTreeMap<TaskId, ChangeId>,
    last_change: u64,
    last_task: u64,
}

impl Changes {
    /// Creates a change. Its tasks wait.
    pub(crate) fn create(
        &mut self,
        kind: ChangeKind,
        summary: String,
        date: Timestamp,
        tasks: Vec<NewTask>,
    ) -> ChangeId {
        self.last_change += 1;
        let id = ChangeId(self.last_change);
        let first = self.last_task + 1;
        let mut numbered = Vec::with_capacity(tasks.len());
        for NewTask { work, kind, summary, after } in tasks {
            self.last_task += 1;
            let task = TaskId(self.last_task);
            self.tasks.insert(task, id);
            numbered.push(Task {
                id: task,
                work,
                kind,
                summary,
                status: Status::Do,
                log: Vec::new(),
                done: 0,
                total: 1,
                began: date,
                ready: None,
                data: Map::new(),
                after: after.into_iter().map(|place| TaskId(first + place as u64)).collect(),
                error: None,
            });
        }
        let change = Change {
            id,
            kind,
            summary,
            tasks: numbered,
            began: date,
            ready: None,
            data: Map::new(),
            told: None,
        };
        self.changes.insert(id, change);
        id
    }

    pub(crate) fn get(&self, id: ChangeId) -> Option<&Change> {
        self.changes.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ChangeId) -> Option<&mut Change> {
        self.changes.get_mut(&id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Change> {
        self.changes.values()
    }

    /// Returns the change of a task that is kept.
    pub(crate) fn of_task(&self, task: TaskId) -> Option<ChangeId> {
        self.tasks.get(&task).copied()
    }

    pub(crate) fn task_mut(&mut self, task: TaskId) -> Option<&mut Task> {
        let change = self.changes.get_mut(self.tasks.get(&task)?)?;
        change.tasks.iter_mut().find(|it| it.id == task)
    }

    /// Returns the numbers of changes in progress, and of their tasks.
    pub(crate) fn in_progress(&self) -> (usize, usize) {
        let open = self.changes.values().filter(|change| change.ready.is_none());
        open.fold((0, 0), |(changes, tasks), change| (changes + 1, tasks + change.tasks.len()))
    }

    /// Drops ready changes that are too old, and the oldest of those that are too many.
    pub(crate) fn prune(&mut self, date: Timestamp, limits: &PodLimits) {
        let is_old =
            |ready: Timestamp| date.duration_since(ready).unsigned_abs() > limits.change_age && date > ready;
        let mut over = self.changes.len().saturating_sub(limits.changes);
        let mut tasks_over = self.tasks.len().saturating_sub(limits.tasks);
        let mut dropped = Vec::new();
        for change in self.changes.values() {
            let Some(ready) = change.ready else { continue };
            if over > 0 || tasks_over > 0 || is_old(ready) {
                over = over.saturating_sub(1);
                tasks_over = tasks_over.saturating_sub(change.tasks.len());
                dropped.push(change.id);
            }
        }
        for id in dropped {
            if let Some(change) = self.changes.remove(&id) {
                for task in change.tasks {
                    self.tasks.remove(&task.id);
                }
            }
        }
    }
}
