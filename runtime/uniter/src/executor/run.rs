//! The run of a hook or an action, the unit's record after it (`docs/hook-model.md` 1.5, 1.6), and the commit of its
//! outcome.

use periapt_host_api::{
    Digest, TaskId, Timestamp,
    action::TaskStatus,
    exec,
    journal::{HookOutcome, JournalRecord},
    record::Begun,
    view::View,
};

use super::{
    Executor, ExecutorCommand, Phase, Returned, Run, RunKind, RunReport, Step,
    commit::{CommitSubject, CommittedParts},
};
use crate::{
    ActionEnd, ActionRun, HookEnd, HookRun, Jitter, Progress, progress, retry, status, update_status,
};

/// The current run.
#[derive(Debug, Clone)]
pub(super) struct Running {
    run: HookRun,
    /// True if the run was told to stop.
    interrupted: bool,
}

impl Executor {
    /// Starts a hook whose turn has come. It first commits the start if the hook may leave traces outside its commit.
    pub(super) fn start_hook(&mut self, run: HookRun, step: &mut Step<'_>) {
        if !run.must_begin() {
            return self.run(run, step.view.clone(), step);
        }
        let (progress, begun) = begin(&run);
        let subject = CommitSubject::BeginHook { view: Box::new(step.view.clone()), run: Box::new(begun) };
        self.commit(run.record.seq, &progress, CommittedParts::default(), subject, step);
    }

    /// Commits the start of an action, so that it never runs twice (1.6).
    pub(super) fn begin_action(&mut self, run: ActionRun, step: &mut Step<'_>) {
        let ActionRun { begin, run, .. } = run;
        let seq = run.record.seq.saturating_sub(1);
        self.commit(seq, &begin, CommittedParts::default(), CommitSubject::BeginAction(Box::new(run)), step);
    }

    /// Runs an action whose start is committed, with the view that shows it.
    pub(super) fn run_action(&mut self, run: HookRun, step: &mut Step<'_>) {
        if self.seq(step.view) != Some(run.record.seq) {
            return self.conclude(step);
        }
        self.run(HookRun { snapshot: step.view.revision, ..run }, step.view.clone(), step);
    }

    /// Runs a hook or an action with a view.
    pub(super) fn run(&mut self, run: HookRun, view: View, step: &mut Step<'_>) {
        let kind = match run.event.task() {
            None => RunKind::Hook,
            Some(_) if run.event.hook_name() == exec::ACTION => RunKind::Script,
            Some(_) => RunKind::Action,
        };
        let operation = run.operation();
        self.announced = Some(operation);
        step.command(ExecutorCommand::Started(operation));
        self.leave(crate::before_hook(&run), step);
        self.phase = Phase::Running(Box::new(Running { run: run.clone(), interrupted: false }));
        step.command(ExecutorCommand::Run(Box::new(Run { run, view, kind })));
        self.while_running(step);
    }

    /// Interrupts an action that an operator cancelled, or whose task is not in the view any more.
    pub(super) fn while_running(&mut self, step: &mut Step<'_>) {
        let Phase::Running(running) = &mut self.phase else { return };
        let stops = running.run.event.task().is_some_and(|task| is_to_stop(step.view, task));
        if stops && !running.interrupted {
            running.interrupted = true;
            step.command(ExecutorCommand::Interrupt);
        }
    }

    /// Handles the end of a run.
    pub(super) fn run_ended(&mut self, report: RunReport, jitter: Jitter, step: &mut Step<'_>) {
        if !matches!(self.phase, Phase::Running(_)) {
            return;
        }
        let Phase::Running(running) = std::mem::replace(&mut self.phase, Phase::Resting { wake_at: None })
        else {
            return;
        };
        let run = running.run;
        match run.event.task() {
            Some(task) => {
                let (end, parts) = report.of_action(&run, &self.engine);
                self.commit_action(run, task, end, parts, step);
            }
            None => {
                self.suspicion = self.suspicion.take().filter(|suspicion| suspicion.on_trial);
                let (end, parts) = report.of_hook(&run, &self.engine);
                self.commit_hook(run, end, parts, jitter, step);
            }
        }
    }

    /// Commits the end of a hook, unless there is nothing to write.
    pub(super) fn commit_hook(
        &mut self,
        run: HookRun,
        end: HookEnd,
        parts: CommittedParts,
        jitter: Jitter,
        step: &mut Step<'_>,
    ) {
        let progress = hook_ended(&run, end.clone(), step.now.timer, jitter);
        if progress.only_rearms(&run) && parts.effects.is_empty() {
            let due = progress.record.update_status_due;
            self.rearmed = Some(super::NextUpdateStatus { seq: run.record.seq, due });
            if let Some(journal) = &parts.journal {
                self.uncommitted.count(&journal.outcome, &journal.costs);
            }
            return self.conclude(step);
        }
        self.leave(progress.early.clone(), step);
        let seq = run.record.seq;
        self.commit(seq, &progress, parts, CommitSubject::Hook { run: Box::new(run), end, jitter }, step);
    }

    /// Commits the end of an action.
    fn commit_action(
        &mut self,
        run: HookRun,
        task: TaskId,
        end: ActionEnd,
        parts: CommittedParts,
        step: &mut Step<'_>,
    ) {
        let progress = crate::action_ended(&run, task, end.clone());
        self.leave(progress.early.clone(), step);
        let seq = run.record.seq;
        self.commit(seq, &progress, parts, CommitSubject::Action { run: Box::new(run), task, end }, step);
    }

    /// Handles the refusal of a run's end. The hook has failed (C-3), or the action has failed without putting its unit
    /// in error (I08). The journal record is committed without effects. If that is refused, too, the unit waits; for an
    /// action the resolver then finds a run without an agent.
    pub(super) fn end_was_refused(
        &mut self,
        subject: CommitSubject,
        parts: CommittedParts,
        reason: &str,
        step: &mut Step<'_>,
    ) -> bool {
        match subject {
            CommitSubject::Hook {
                run,
                end: HookEnd::Handled { status_set } | HookEnd::Unhandled { status_set },
                jitter,
            } => {
                let message = format!("the hook's effects were refused: {reason}");
                let parts = parts.failed(&message);
                self.commit_hook(*run, HookEnd::Failed { message, status_set }, parts, jitter, step);
                true
            }
            CommitSubject::Action { run, task, end } => {
                let end = end.refused(reason);
                let parts = parts.failed(&end.message);
                let progress = crate::action_ended(&run, task, end);
                self.commit(run.record.seq, &progress, parts, CommitSubject::RefusedAction, step);
                true
            }
            _ => false,
        }
    }
}

/// Returns the commit before a run that [must begin](HookRun::must_begin), and the run after it. The record of the
/// attempt shows later that an interrupted run had started (`docs/design/storage.md`).
pub fn begin(run: &HookRun) -> (Progress, HookRun) {
    let mut after = Progress::after(&run.record);
    after.record.begun = Some(Begun {
        event: run.event.clone(),
        attempt: run.attempt,
        operation: run.operation,
        beside_workloads: run.beside_workloads,
    });
    let run = HookRun { record: after.record.clone(), ..run.clone() };
    (after, run)
}

/// Returns the commit after a hook: the unit's progress after success, the failure otherwise. The jitter is for the
/// back-off or the update-status timer, whichever is armed.
pub fn hook_ended(run: &HookRun, end: HookEnd, now: Timestamp, jitter: Jitter) -> Progress {
    let mut after = Progress::after(&run.record);
    match end {
        HookEnd::Handled { status_set } | HookEnd::Unhandled { status_set } => {
            after.record.status_set |= status_set;
            progress::commit(&mut after, &run.event, &run.seen);
            update_status::rearm(&mut after.record, run, now, jitter);
            after.early.extend(status::after_hook(&run.event, &after.record));
        }
        HookEnd::Failed { message, status_set } => {
            after.record.status_set |= status_set;
            let failure = retry::failure(&message, run.failures, now, jitter);
            progress::fail(&mut after, &run.unit, &run.event, failure);
        }
    }
    after
}

impl RunReport {
    /// Returns the end of a hook, and the parts for its commit. A failed hook keeps its journal record alone.
    pub(super) fn of_hook(self, run: &HookRun, engine: &str) -> (HookEnd, CommittedParts) {
        let status_set = self.status_set;
        let failed = |message: String| {
            (HookEnd::Failed { message: message.clone(), status_set }, HookOutcome::Failed { message })
        };
        let (end, outcome) = match &self.returned {
            Returned::Handled | Returned::Exited { .. } => {
                (HookEnd::Handled { status_set }, HookOutcome::Handled)
            }
            Returned::Unhandled => (HookEnd::Unhandled { status_set }, HookOutcome::Unhandled),
            Returned::Failed { message, .. } => failed(message.clone()),
            Returned::Stopped => failed("it was stopped".to_owned()),
        };
        let parts = self.committed_parts(run, engine, outcome);
        (end, parts)
    }

    /// Returns the end of an action, and the parts for its commit. An action without a handler has failed.
    pub(super) fn of_action(mut self, run: &HookRun, engine: &str) -> (ActionEnd, CommittedParts) {
        let succeeded = matches!(self.returned, Returned::Handled | Returned::Exited { .. });
        let (results, said) = (std::mem::take(&mut self.results), self.said_failed.take());
        let end = ActionEnd::of(&run.unit, self.returned.clone(), said, results);
        let end = ActionEnd { status_set: self.status_set, ..end };
        let outcome = match succeeded {
            true => HookOutcome::Handled,
            false => HookOutcome::Failed { message: end.message.clone() },
        };
        let parts = self.committed_parts(run, engine, outcome);
        (end, parts)
    }

    fn committed_parts(self, run: &HookRun, engine: &str, outcome: HookOutcome) -> CommittedParts {
        let keeps = !matches!(outcome, HookOutcome::Failed { .. });
        let journal = JournalRecord {
            seq: run.operation().0,
            event: run.event.clone(),
            attempt: run.attempt,
            snapshot: run.snapshot,
            charm: run.charm.digest,
            component: self.component.unwrap_or(Digest::from_bytes([0; 32])),
            engine: engine.to_owned(),
            started_at: self.started_at,
            outcome,
            costs: self.costs,
            coalesced: run.coalesced.clone(),
            calls: self.calls,
            seed: self.seed,
            sealed: None,
        };
        match keeps {
            true => CommittedParts {
                effects: self.effects,
                leader_term: self.leader_term,
                journal: Some(journal),
            },
            false => CommittedParts { journal: Some(journal), ..CommittedParts::default() },
        }
    }
}

/// Returns true if a task must stop.
fn is_to_stop(view: &View, task: TaskId) -> bool {
    view.tasks.get(&task).is_none_or(|task| task.status == TaskStatus::Aborting)
}
