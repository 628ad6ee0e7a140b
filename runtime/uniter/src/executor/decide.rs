//! The start of due work, as the resolver decides.

use periapt_host_api::{exec, view::View};

use super::{
    Executor, ExecutorCommand, Phase, Step,
    commit::{CommitSubject, CommittedParts},
    turn::WaitingOperation,
};
use crate::{Decision, Progress};

impl Executor {
    /// Resolves the unit, and starts to carry out the decision.
    pub(super) fn decide(&mut self, step: &mut Step<'_>) {
        self.phase = Phase::Resting { wake_at: None };
        match self.resolve(step) {
            Decision::Stop => self.stop(step),
            Decision::RunHook(run) => self.await_charm(WaitingOperation::Hook { charm: run.charm }, step),
            Decision::RunAction(run) => {
                // A script needs the charm only for files, and operators need scripts most when a charm does not
                // arrive.
                let is_script = run.run.event.hook_name() == exec::ACTION;
                let due = WaitingOperation::Action { task: run.task, group: run.group, charm: run.run.charm };
                match is_script {
                    true => self.await_turn(due, step),
                    false => self.await_charm(due, step),
                }
            }
            Decision::Deploy(run) => self.await_charm(WaitingOperation::Deploy { charm: run.charm }, step),
            Decision::Commit(progress) => self.bookkeep(&progress, step),
            Decision::Wait { wake_at } => {
                self.report_failure(step);
                self.phase = Phase::Resting { wake_at };
            }
            Decision::Idle { wake_at } => {
                self.report_idle(step);
                self.phase = Phase::Resting { wake_at };
            }
        }
    }

    /// Commits a step without a hook.
    fn bookkeep(&mut self, progress: &Progress, step: &mut Step<'_>) {
        let Some(seq) = self.seq(step.view) else { return };
        let view: &View = step.view;
        let skipped = progress.skipped.as_ref();
        let journal = skipped.and_then(|skipped| skipped.journal(view, &self.unit, step.now.wall));
        self.leave(progress.early.clone(), step);
        self.commit(
            seq,
            progress,
            CommittedParts { journal, ..CommittedParts::default() },
            CommitSubject::Bookkeeping,
            step,
        );
    }

    /// Stops managing the unit once its early effects are sent.
    fn stop(&mut self, step: &mut Step<'_>) {
        self.phase = Phase::Stopped;
        self.stop_when_all_is_sent(step);
    }

    pub(super) fn stop_when_all_is_sent(&mut self, step: &mut Step<'_>) {
        if matches!(self.phase, Phase::Stopped) && !self.outbox.send(step) {
            step.command(ExecutorCommand::Stop);
        }
    }

    fn report_idle(&mut self, step: &mut Step<'_>) {
        let seq = self.seq(step.view);
        if self.idle_at != seq {
            self.idle_at = seq;
            self.leave(crate::idle_effect(step.view, &self.unit), step);
        }
    }

    /// Restores the status of a failure that waits for `resolved`, in case an earlier runner's status hides it.
    fn report_failure(&mut self, step: &mut Step<'_>) {
        let seq = self.seq(step.view);
        if self.failure_at != seq {
            self.failure_at = seq;
            self.leave(crate::hidden_failure(step.view, &self.unit), step);
        }
    }
}
