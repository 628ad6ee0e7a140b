//! Runs a hook or an action, and says what is to be committed of it.

use periapt_host_api::{TaskId, action::TaskStatus, exec, view::View};

use super::{Executor, ExecutorCommand, Phase, Run, RunKind, RunReport, Step, commit::About, report::Kept};
use crate::{ActionEnd, ActionRun, HookEnd, HookRun, Jitter};

/// What runs.
#[derive(Debug, Clone)]
pub(super) struct Running {
    run: HookRun,
    /// Whether it was told to stop.
    interrupted: bool,
}

impl Executor {
    /// Runs a hook whose turn has come, after that is on record if it may leave traces that no commit undoes.
    pub(super) fn start_hook(&mut self, run: HookRun, step: &mut Step<'_>) {
        if !run.must_begin() {
            return self.run(run, step.view.clone(), step);
        }
        let (progress, begun) = crate::begin(&run);
        let about = About::BeginHook { view: Box::new(step.view.clone()), run: Box::new(begun) };
        self.commit(run.record.seq, &progress, Kept::default(), about, step);
    }

    /// Puts it on record that an action begins: it never runs twice (1.6).
    pub(super) fn begin_action(&mut self, run: ActionRun, step: &mut Step<'_>) {
        let ActionRun { begin, run, .. } = run;
        let seq = run.record.seq.saturating_sub(1);
        self.commit(seq, &begin, Kept::default(), About::BeginAction(Box::new(run)), step);
    }

    /// Runs an action whose beginning is on record, from the view that shows it.
    pub(super) fn run_action(&mut self, run: HookRun, step: &mut Step<'_>) {
        if self.seq(step.view) != Some(run.record.seq) {
            return self.conclude(step);
        }
        self.run(HookRun { snapshot: step.view.revision, ..run }, step.view.clone(), step);
    }

    /// Runs on a snapshot.
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

    /// Interrupts an action that an operator cancelled, or whose unit is not this runner's any more.
    pub(super) fn while_running(&mut self, step: &mut Step<'_>) {
        let Phase::Running(running) = &mut self.phase else { return };
        let stops = running.run.event.task().is_some_and(|task| is_to_stop(step.view, task));
        if stops && !running.interrupted {
            running.interrupted = true;
            step.command(ExecutorCommand::Interrupt);
        }
    }

    /// A run came to its end.
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
                let (end, kept) = report.of_action(&run, &self.engine);
                self.commit_action(run, task, end, kept, step);
            }
            None => {
                self.suspicion = self.suspicion.take().filter(|suspicion| suspicion.on_trial);
                let (end, kept) = report.of_hook(&run, &self.engine);
                self.commit_hook(run, end, kept, jitter, step);
            }
        }
    }

    /// Commits how a hook ended, unless there is nothing to write.
    pub(super) fn commit_hook(
        &mut self,
        run: HookRun,
        end: HookEnd,
        kept: Kept,
        jitter: Jitter,
        step: &mut Step<'_>,
    ) {
        let progress = crate::hook_ended(&run, end.clone(), step.now.timer, jitter);
        if progress.only_rearms(&run) && kept.effects.is_empty() {
            let due = progress.record.update_status_due;
            self.rearmed = Some(super::Rearmed { seq: run.record.seq, due });
            if let Some(journal) = &kept.journal {
                self.uncommitted.count(&journal.outcome, &journal.costs);
            }
            return self.conclude(step);
        }
        self.leave(progress.early.clone(), step);
        let seq = run.record.seq;
        self.commit(seq, &progress, kept, About::Hook { run: Box::new(run), end, jitter }, step);
    }

    /// Commits how an action ended.
    fn commit_action(&mut self, run: HookRun, task: TaskId, end: ActionEnd, kept: Kept, step: &mut Step<'_>) {
        let progress = crate::action_ended(&run, task, end.clone());
        self.leave(progress.early.clone(), step);
        let seq = run.record.seq;
        self.commit(seq, &progress, kept, About::Action { run: Box::new(run), task, end }, step);
    }

    /// A hook whose commit was refused failed (C-3), and so did an action, whose unit is not in error (I08). The record of
    /// the run is kept, without effects. Should even that be refused, the unit waits; the resolver finds an action as one
    /// that nobody runs.
    pub(super) fn end_was_refused(
        &mut self,
        about: About,
        kept: Kept,
        reason: &str,
        step: &mut Step<'_>,
    ) -> bool {
        match about {
            About::Hook {
                run,
                end: HookEnd::Handled { status_set } | HookEnd::Unhandled { status_set },
                jitter,
            } => {
                let message = format!("the hook's effects were refused: {reason}");
                let kept = kept.failed(&message);
                self.commit_hook(*run, HookEnd::Failed { message, status_set }, kept, jitter, step);
                true
            }
            About::Action { run, task, end } => {
                let end = end.refused(reason);
                let kept = kept.failed(&end.message);
                let progress = crate::action_ended(&run, task, end);
                self.commit(run.record.seq, &progress, kept, About::RefusedAction, step);
                true
            }
            _ => false,
        }
    }
}

/// Whether a task is to stop.
fn is_to_stop(view: &View, task: TaskId) -> bool {
    view.tasks.get(&task).is_none_or(|task| task.status == TaskStatus::Aborting)
}
