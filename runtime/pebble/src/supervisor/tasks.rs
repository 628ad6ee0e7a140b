//! Changes and their tasks, as they go on.

use serde_json::Value;

use super::Supervisor;
use crate::{
    change::{ChangeKind, NewTask, Status, Work},
    message::{ChangeId, TaskId},
    notice::{CHANGE_UPDATE, Occurrence},
};

impl Supervisor {
    /// Creates a change; its tasks begin at the end of the step.
    pub(super) fn create_change(
        &mut self,
        kind: ChangeKind,
        summary: String,
        tasks: Vec<NewTask>,
    ) -> ChangeId {
        self.changes.prune(self.now.date, &self.options.limits);
        let change = self.changes.create(kind, summary, self.now.date, tasks);
        self.active.insert(change);
        change
    }

    /// Begins the tasks whose turn has come, and holds back those after a failed one.
    pub(super) fn run_tasks(&mut self) {
        // A task that ends at once can let others begin. Each round makes at least one task leave `Do`.
        while let Some((task, work, turn)) = self.next_task() {
            match (turn, work) {
                (Status::Hold, _) => self.set_status(task, Status::Hold),
                (_, Work::Start(name)) => {
                    self.set_status(task, Status::Doing);
                    self.start_service(&name, task);
                }
                (_, Work::Stop(name)) => {
                    self.set_status(task, Status::Doing);
                    self.stop_service(&name, Some(task));
                }
                (_, Work::Exec | Work::Check(_)) => self.set_status(task, Status::Doing),
            }
        }
        for change in self.active.iter().copied().collect::<Vec<_>>() {
            self.settle(change);
        }
    }

    /// Returns a task that can begin, or that never will.
    fn next_task(&self) -> Option<(TaskId, Work, Status)> {
        for change in self.active.iter().filter_map(|id| self.changes.get(*id)) {
            for task in change.tasks.iter().filter(|task| task.status == Status::Do) {
                let before = || change.tasks.iter().filter(|other| task.after.contains(&other.id));
                if before().any(|other| matches!(other.status, Status::Hold | Status::Error)) {
                    return Some((task.id, task.work.clone(), Status::Hold));
                }
                if before().all(|other| other.status == Status::Done) {
                    return Some((task.id, task.work.clone(), Status::Doing));
                }
            }
        }
        None
    }

    fn set_status(&mut self, task: TaskId, status: Status) {
        let date = self.now.date;
        if let Some(task) = self.changes.task_mut(task) {
            task.status = status;
            if status.is_ready() {
                task.ready = Some(date);
            }
            if status == Status::Done {
                task.done = task.total;
            }
        }
        if let Some(change) = self.changes.of_task(task) {
            self.settle(change);
        }
    }

    /// Ends a task, with its error in words if it has failed.
    pub(super) fn end_task(&mut self, task: TaskId, result: Result<(), String>) {
        let (date, limits) = (self.now.date, &self.options.limits);
        let Some(found) = self.changes.task_mut(task).filter(|task| !task.status.is_ready()) else { return };
        let status = match result {
            Ok(()) => Status::Done,
            Err(error) => {
                found.write(date, "ERROR", &error, limits);
                found.error = Some(error);
                Status::Error
            }
        };
        self.set_status(task, status);
    }

    /// Ends a task that was given up: neither done nor failed.
    pub(super) fn hold_task(&mut self, task: TaskId) {
        self.set_status(task, Status::Hold);
    }

    /// Marks a task that is being stopped.
    pub(super) fn abort_task(&mut self, task: TaskId) {
        self.set_status(task, Status::Abort);
    }

    /// Writes a line to a task's log.
    pub(super) fn write_task(&mut self, task: TaskId, level: &str, text: &str) {
        let (date, limits) = (self.now.date, &self.options.limits);
        if let Some(task) = self.changes.task_mut(task) {
            task.write(date, level, text, limits);
        }
    }

    /// Sets a task's progress.
    pub(super) fn set_progress(&mut self, task: TaskId, done: u64, total: u64) {
        if let Some(task) = self.changes.task_mut(task) {
            (task.done, task.total) = (done, total);
        }
    }

    /// Adds a value to a task's data.
    pub(super) fn set_task_data(&mut self, task: TaskId, key: &str, value: Value) {
        if let Some(task) = self.changes.task_mut(task) {
            task.data.insert(key.to_owned(), value);
        }
    }

    /// Returns the task of a change that has one.
    pub(super) fn only_task(&self, change: ChangeId) -> TaskId {
        self.changes.get(change).and_then(|change| change.tasks.first()).map_or(TaskId(0), |task| task.id)
    }

    /// Tells the state of a change, if it is another one than before, and ends it once all tasks are ready.
    fn settle(&mut self, id: ChangeId) {
        let date = self.now.date;
        let Some(change) = self.changes.get_mut(id) else {
            self.active.remove(&id);
            return;
        };
        let status = change.status();
        let ends = change.ready.is_none() && change.tasks.iter().all(|task| task.status.is_ready());
        if ends {
            change.ready = Some(date);
        }
        let is_news = change.told != Some(status);
        change.told = Some(status);
        if is_news {
            let mut data =
                std::collections::BTreeMap::from([("kind".to_owned(), change.kind.as_str().to_owned())]);
            if let Some(Work::Check(name)) = change.tasks.first().map(|task| &task.work) {
                data.insert("check-name".to_owned(), name.clone());
            }
            let (kind, key) = (CHANGE_UPDATE, id.to_string());
            self.occur(Occurrence { user: None, kind, key, data, repeat_after: None });
        }
        if ends {
            self.active.remove(&id);
            self.answer_change(id);
        }
    }
}
