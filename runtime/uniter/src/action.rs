//! The actions of a unit: the next one, its start, and its end (`docs/hook-model.md` 1.7 rule 11, 1.13).

use periapt_host_api::{
    TaskId, Timestamp, UnitName,
    action::{TaskEnd, TaskOutcome, TaskResults, TaskStatus},
    event::Event,
    record::{HookStep, Operation, UnitRecord},
    view::TaskView,
};

use crate::{
    ActionEnd, ActionRun, Decision, HookRun, Progress, executor::Returned, resolve_input::ResolveInput,
    retry, status,
};

/// The message of an action whose agent died while it ran.
const TERMINATED: &str = "action terminated";

/// Ends an action that was started and does not run any more, because its agent died. It has failed, or is aborted
/// if it was to be stopped. It never runs twice (1.6), because its progress is unknown.
pub(crate) fn terminated(input: &ResolveInput<'_>, _now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let task = record.action?;
    let stopping = input.view.tasks.get(&task).is_some_and(|task| task.status == TaskStatus::Aborting);
    let outcome = if stopping { TaskOutcome::Aborted } else { TaskOutcome::Failed };
    let results = TaskResults { return_code: 1, ..TaskResults::default() };
    let end = ActionEnd { outcome, message: TERMINATED.to_owned(), results, status_set: false };
    Some(Decision::Commit(Box::new(ended(record, task, end))))
}

/// Returns the next task by number (U-47), if a started unit is at rest or a hook is in error (U-22). Tasks that
/// operators enqueue before the first start wait for it (N01).
pub(crate) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let may_run = match &record.operation {
        Operation::Continue => record.started,
        Operation::Hook { step: HookStep::Failed(_), .. } => true,
        Operation::Hook { step: HookStep::Queued, .. } | Operation::DeployFailed { .. } => false,
    };
    if !may_run {
        return None;
    }
    let is_next = |task: &&TaskView| task.unit == input.unit.name && task.status == TaskStatus::Pending;
    let task = input.view.tasks.values().find(is_next)?;
    let mut begin = Progress::after(record);
    begin.record.action = Some(task.id);
    begin.transitions.begin_task = Some(task.id);
    let event = Event::Action { name: task.action.clone(), task: task.id };
    let run = input.hook_run(event, 1, begin.record.clone(), now);
    Some(Decision::RunAction(Box::new(ActionRun { task: task.id, group: task.group.clone(), begin, run })))
}

/// Returns the commit after an action. An action's failure puts no unit in error (U-44), and a failed hook stays
/// failed.
pub fn action_ended(run: &HookRun, task: TaskId, end: ActionEnd) -> Progress {
    ended(&run.record, task, end)
}

fn ended(record: &UnitRecord, task: TaskId, end: ActionEnd) -> Progress {
    let mut progress = Progress::after(record);
    progress.record.action = None;
    progress.record.status_set |= end.status_set;
    if let Operation::Hook { event, step: HookStep::Failed(failure) } = &record.operation {
        progress.early.push(status::hook_failed(event, failure));
    }
    let message = retry::truncated(&end.message);
    progress.transitions.end_task =
        Some(TaskEnd { task, outcome: end.outcome, message, results: end.results });
    progress
}

impl ActionEnd {
    /// Computes the end of an action from the handler's return, the charm's own failure message if any, and the
    /// results, whose return code is set here; the caller sets `status_set`. The effects are committed if and only if the handler returned
    /// success, even if the charm reports a failure (C-8).
    pub fn of(unit: &UnitName, returned: Returned, failed: Option<String>, results: TaskResults) -> Self {
        let (outcome, return_code, message) = match (returned, failed) {
            (Returned::Handled, None) => (TaskOutcome::Completed, 0, String::new()),
            (Returned::Handled, Some(message)) => (TaskOutcome::Failed, 0, message),
            (Returned::Exited { code }, None) => (TaskOutcome::Completed, code, String::new()),
            (Returned::Exited { code }, Some(message)) => (TaskOutcome::Failed, code, message),
            (Returned::Unhandled, _) => {
                (TaskOutcome::Failed, 1, format!("action not implemented on unit {unit:?}"))
            }
            (Returned::Failed { code, .. }, Some(message)) => (TaskOutcome::Failed, code, message),
            (Returned::Failed { code, message }, None) if message.is_empty() => {
                (TaskOutcome::Failed, code, format!("exit status {code}"))
            }
            (Returned::Failed { code, message }, None) => (TaskOutcome::Failed, code, message),
            (Returned::Stopped, _) => (TaskOutcome::Aborted, 1, "action cancelled".to_owned()),
        };
        Self { outcome, message, results: TaskResults { return_code, ..results }, status_set: false }
    }

    /// Returns the end of the action after its commit was refused: it failed, and has no effects (U-46).
    #[must_use]
    pub fn refused(self, reason: &str) -> Self {
        let mut results = TaskResults { return_code: 1, ..self.results };
        if !results.stderr.is_empty() && !results.stderr.ends_with('\n') {
            results.stderr.push('\n');
        }
        results.stderr.push_str(reason);
        let message = "committing requested changes failed".to_owned();
        Self { outcome: TaskOutcome::Failed, message, results, ..self }
    }
}
