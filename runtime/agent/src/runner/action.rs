//! One action: its beginning is committed, it runs, and its end is committed (`hook-model.md` 1.13).

use std::sync::Arc;

use periapt_hook::ActionGathered;
use periapt_host_api::{
    TaskId,
    action::{TaskResults, TaskStatus},
    journal::{HookOutcome, JournalRecord},
    view::View,
};
use periapt_sandbox::{HookErrorKind, Outcome as RunOutcome};
use periapt_uniter::{ActionEnd, ActionReturn, ActionRun, HookRun};

use super::{
    RunnerError, World,
    commit::{Committed, Outcome},
    exec,
    hook::{self, Attempt},
    outbox::Outbox,
    unit::{Step, Unit},
};
use crate::protocol::ToKeeper;

impl Unit {
    /// Runs an action whose group's turn has come.
    pub(super) async fn action(&mut self, run: ActionRun) -> Result<Step, RunnerError> {
        let ActionRun { task, begin, mut run, .. } = run;
        let before = run.record.seq.saturating_sub(1);
        match self.commit(before, &begin, Outcome::default()).await? {
            Committed::Done => {}
            Committed::Stale | Committed::Replaced => return Ok(Step::Acted),
            Committed::Refused(refusal) => return self.refused(&refusal).await,
        }
        let view = self.newest_view();
        let begun = view.units.get(&run.unit).is_some_and(|unit| unit.record.seq == run.record.seq);
        if !begun {
            return Ok(Step::Acted);
        }
        run.snapshot = view.revision;
        let (unit, operation) = (run.unit.clone(), run.operation());
        self.world().link.tell(ToKeeper::HookStarted { unit: unit.clone(), operation }).await;
        self.leave(periapt_uniter::before_hook(&run));
        tracing::debug!(%unit, action = %run.event, %task, "running an action");
        let (end, outcome) = execute(self.world(), view, &run, task, &self.outbox()).await;
        let step = self.end_action(&run, task, end, outcome).await;
        self.world().link.tell(ToKeeper::HookEnded { unit, operation }).await;
        step
    }

    /// Commits how it ended. If that is refused, the action failed, and the unit is not in error (I08). Should even
    /// that be refused, the resolver finds the action as one that nobody runs.
    async fn end_action(
        &mut self,
        run: &HookRun,
        task: TaskId,
        end: ActionEnd,
        outcome: Outcome,
    ) -> Result<Step, RunnerError> {
        let progress = periapt_uniter::action_ended(run, task, end.clone());
        self.leave(progress.early.clone());
        let refusal = match self.commit(run.record.seq, &progress, outcome.clone()).await? {
            Committed::Done | Committed::Stale | Committed::Replaced => return Ok(Step::Acted),
            Committed::Refused(refusal) => refusal,
        };
        let end = end.refused(&refusal.message);
        let journal = outcome.journal.map(|journal| failed(journal, &end.message));
        let progress = periapt_uniter::action_ended(run, task, end);
        match self.commit(run.record.seq, &progress, Outcome { journal, ..Outcome::default() }).await? {
            Committed::Done | Committed::Stale | Committed::Replaced => Ok(Step::Acted),
            Committed::Refused(refusal) => self.refused(&refusal).await,
        }
    }
}

fn failed(journal: JournalRecord, message: &str) -> JournalRecord {
    JournalRecord { outcome: HookOutcome::Failed { message: message.to_owned() }, ..journal }
}

/// Runs the action until it ends or is to stop.
async fn execute(
    world: &Arc<World>,
    view: View,
    run: &HookRun,
    task: TaskId,
    outbox: &Arc<Outbox>,
) -> (ActionEnd, Outcome) {
    if run.event.hook_name() == periapt_host_api::exec::ACTION {
        return exec::execute(world, view, run, task, outbox).await;
    }
    let attempt = match hook::attempt(world, view, run, outbox).await {
        Ok(attempt) => attempt,
        Err((journal, message)) => {
            let returned = ActionReturn::Failed { code: 1, message: message.clone() };
            let end = ActionEnd::of(&run.unit, returned, None, TaskResults::default(), false);
            return (end, Outcome { journal: Some(failed(*journal, &message)), ..Outcome::default() });
        }
    };
    let Attempt { mut journal, outcome, gathered } = attempt;
    let ActionGathered { values, failed: said, stdout, stderr } = gathered.action.unwrap_or_default();
    let results = TaskResults { return_code: 0, stdout, stderr, values };
    let returned = match outcome {
        RunOutcome::Handled => ActionReturn::Handled,
        RunOutcome::Unhandled => ActionReturn::Unhandled,
        RunOutcome::Failed(error) if error.kind == HookErrorKind::Interrupted => ActionReturn::Stopped,
        RunOutcome::Failed(error) => {
            // A handler that failed with 0 failed all the same.
            let code = if error.code == 0 { 1 } else { error.code };
            ActionReturn::Failed { code, message: error.message }
        }
    };
    let handled = returned == ActionReturn::Handled;
    let end = ActionEnd::of(&run.unit, returned, said, results, gathered.status_set);
    tracing::debug!(unit = %run.unit, %task, outcome = ?end.outcome, "an action ended");
    journal.outcome = match handled {
        true => HookOutcome::Handled,
        false => HookOutcome::Failed { message: end.message.clone() },
    };
    let outcome = match handled {
        true => {
            let journal = Some(*journal);
            Outcome {
                effects: gathered.effects,
                leader_term: gathered.leader_term,
                journal,
                ..Outcome::default()
            }
        }
        false => Outcome { journal: Some(*journal), ..Outcome::default() },
    };
    (end, outcome)
}

/// Waits until a task is to stop: an operator cancelled it, or its unit is not this runner's any more.
pub(super) async fn to_stop(world: &World, task: TaskId) {
    let stops = |view: &View| view.tasks.get(&task).is_none_or(|task| task.status == TaskStatus::Aborting);
    // A view of another store ends the waiting, too.
    while !stops(&world.mirror.view()) {
        world.mirror.wait_for(stops).await;
    }
}
