//! One unit: what it does next is asked of the resolver, done, committed, and asked again. Every decision is the
//! resolver's; this only carries it out.

use std::{pin::pin, sync::Arc, time::Duration};

use periapt_host_api::{
    OperationId, Refusal, Timestamp, UnitName, commit::EarlyEffect, exec, usage::Usage, view::View,
};
use periapt_uniter::{ActionRun, Decision, DeployRun, HookEnd, HookRun, Jitter, Progress};
use tokio::time::sleep;

use super::{
    RunnerError, World,
    board::Doing,
    charms::NotReady,
    commit::{Committed, Outcome, commit},
    hook::{self, Ran},
    mirror::Changes,
    outbox::Outbox,
};
use crate::{
    backoff::Backoff,
    clock,
    protocol::{Suspect, ToKeeper},
};

mod arrival;

/// A hook that had this many runners die under it is a hook error (`design.md` section 5).
const DEATHS: u32 = 3;

/// What author and operator read of such a hook.
const CRASHED: &str = "the sandbox crashed";

/// The longest sleep before the clock is looked at again: a sleep does not go on while the host sleeps.
const CLOCK_CHECK: Duration = Duration::from_secs(30);

/// What a step of a unit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was done; ask again.
    Acted,
    /// Nothing is due.
    Rest {
        /// None: before the view changes.
        wake_at: Option<Timestamp>,
    },
    /// The unit is not looked after any more.
    Stopped,
}

/// What became of a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It ended, or is not due any more.
    Cleared,
    /// Its charm is not here. It runs when that arrives, and nothing beside it then.
    Left,
}

/// When update-status is due next, decided by a run of it that had nothing to write.
#[derive(Debug, Clone, Copy)]
struct Rearmed {
    seq: u64,
    due: Option<Timestamp>,
}

/// One unit's executor.
pub(crate) struct Unit {
    world: Arc<World>,
    name: UnitName,
    outbox: Arc<Outbox>,
    changes: Changes,
    rearmed: Option<Rearmed>,
    /// The `seq` at which idle was reported.
    idle_at: Option<u64>,
    /// The `seq` at which a failure was reported that another status hid.
    failure_at: Option<u64>,
    /// The hook that may have killed a runner: it runs alone.
    suspect: Option<OperationId>,
    refusals: Backoff,
    /// What hooks used that had nothing to commit. It goes with the next commit; if the runner ends before, nobody is
    /// charged for it.
    uncommitted: Usage,
}

impl Unit {
    /// A unit that stands where its record says.
    pub(crate) fn new(world: Arc<World>, name: UnitName) -> Self {
        let last_number = world.mirror.view().units.get(&name).map_or(0, |unit| unit.early_number);
        let outbox = Outbox::new(name.clone(), world.incarnation, world.link.clone(), last_number);
        let changes = world.mirror.changes();
        let suspect = world.start.suspects.iter().find(|suspect| suspect.unit == name);
        let suspect = suspect.map(|suspect| suspect.operation);
        let refusals = Backoff::new(Duration::from_millis(200), Duration::from_secs(30));
        Self {
            world,
            name,
            outbox,
            changes,
            rearmed: None,
            idle_at: None,
            failure_at: None,
            suspect,
            refusals,
            uncommitted: Usage::default(),
        }
    }

    /// What leaves its hooks early.
    pub(crate) fn outbox(&self) -> Arc<Outbox> {
        Arc::clone(&self.outbox)
    }

    /// Does what is due, until the unit is looked after no more.
    pub(crate) async fn run(mut self) -> Result<(), RunnerError> {
        self.world.board.set(&self.name, Doing::Busy);
        loop {
            match self.step().await? {
                Step::Acted => {}
                Step::Stopped => return Ok(()),
                Step::Rest { wake_at } => {
                    self.world.board.set(&self.name, Doing::Rest { wake_at });
                    self.rest(wake_at).await;
                }
            }
        }
    }

    /// Runs the hook that may have killed the runner before this one, if it is still due. It is alone: nothing
    /// else has started yet. So its charm is asked for once: if it is not here, the model's other units do not wait.
    pub(crate) async fn try_suspect(&mut self, suspect: &Suspect) -> Result<Tried, RunnerError> {
        let crashed = suspect.deaths >= DEATHS;
        let due = |decision: &Decision| match decision {
            Decision::RunHook(run) if run.operation() == suspect.operation => Some(run.charm.digest),
            _ => None,
        };
        if let Some(charm) = due(&self.resolve().1).filter(|_| !crashed) {
            let world = Arc::clone(&self.world);
            let asked = self
                .while_due(world.charms.ask(charm), &|decision: &Decision| due(decision) == Some(charm))
                .await;
            // Of a charm that is here and unusable the hook tells.
            if let Some(Err(NotReady::Away(reason))) = asked {
                tracing::info!(unit = %self.name, reason, "a hook that may have killed a runner waits for its charm");
                return Ok(Tried::Left);
            }
        }
        let (view, decision) = self.resolve();
        match decision {
            Decision::RunHook(run) if run.operation() == suspect.operation => {
                self.hook(view, &run, crashed).await?;
            }
            // The unit went another way meanwhile.
            _ => {}
        }
        Ok(Tried::Cleared)
    }

    async fn step(&mut self) -> Result<Step, RunnerError> {
        let (view, decision) = self.resolve();
        // Looking again and finding nothing to do is rest, too.
        if matches!(
            decision,
            Decision::RunHook(_) | Decision::RunAction(_) | Decision::Deploy(_) | Decision::Commit(_)
        ) {
            self.world.board.set(&self.name, Doing::Busy);
        }
        match decision {
            Decision::Stop => Ok(Step::Stopped),
            Decision::RunHook(run) => self.hook_in_turn(&run).await,
            Decision::RunAction(run) => self.action_in_turn(&view, &run).await,
            Decision::Deploy(run) => self.deploy(&run).await,
            Decision::Commit(progress) => self.bookkeep(&view, &progress).await,
            Decision::Wait { wake_at } => {
                self.report_failure(&view);
                Ok(Step::Rest { wake_at })
            }
            Decision::Idle { wake_at } => {
                self.report_idle(&view);
                Ok(Step::Rest { wake_at })
            }
        }
    }

    /// The newest view, and what it makes due.
    fn resolve(&mut self) -> (View, Decision) {
        let mut view = self.changes.view();
        if let Some(rearmed) = self.rearmed {
            match view.units.get_mut(&self.name) {
                Some(unit) if unit.record.seq == rearmed.seq => {
                    unit.record.update_status_due = rearmed.due;
                }
                _ => self.rearmed = None,
            }
        }
        let decision = periapt_uniter::resolve(&view, &self.name, self.timer_now());
        (view, decision)
    }

    /// Waits for a place among the hooks that run, and then runs what is due by then.
    async fn hook_in_turn(&mut self, due: &HookRun) -> Result<Step, RunnerError> {
        // However long a charm takes to be in place, others run meanwhile. What is wrong with it the hook will tell.
        let charm = due.charm;
        let same = |decision: &Decision| matches!(decision, Decision::RunHook(run) if run.charm == charm);
        if self.charm_in_place(charm.digest, same).await.is_none() {
            return Ok(Step::Acted);
        }
        let view = self.changes.view();
        let memory = self.memory(&view, due.operation());
        let Some(place) = self.world.hooks.take(memory).await else { return Ok(Step::Stopped) };
        match self.resolve() {
            (view, Decision::RunHook(run)) if place.is_enough_for(self.memory(&view, run.operation())) => {
                let step = self.hook(view, &run, false).await;
                self.suspect = None;
                step
            }
            // It is not due any more, or may use more by now.
            _ => Ok(Step::Acted),
        }
    }

    /// The memory that a hook may use; for a suspect all, so that nothing runs beside it.
    fn memory(&self, view: &View, operation: OperationId) -> u64 {
        match self.suspect == Some(operation) {
            true => u64::MAX,
            false => hook::memory(view, &self.name),
        }
    }

    /// Waits for its group's turn and a place among the hooks that run, and then runs what is due by then. Whatever
    /// changes meanwhile may make something else due; if it does not, the place in the queue is kept, for who comes
    /// again comes last, and in a busy model something always changes.
    async fn action_in_turn(&mut self, view: &View, run: &ActionRun) -> Result<Step, RunnerError> {
        let same = |decision: &Decision| matches!(decision, Decision::RunAction(again) if waits_for_the_same(run, again));
        // A script needs nothing of the charm until it opens a file, and an operator whose charm does not arrive wants
        // it all the more.
        let is_script = run.run.event.hook_name() == exec::ACTION;
        if !is_script && self.charm_in_place(run.run.charm.digest, same).await.is_none() {
            return Ok(Step::Acted);
        }
        let world = Arc::clone(&self.world);
        let machine = view.units.get(&self.name).map(|unit| unit.machine);
        let memory = hook::memory(view, &self.name);
        let turn = async {
            let group = match (machine, &run.group) {
                (Some(machine), Some(group)) => Some(world.groups.enter(machine, group).await),
                _ => None,
            };
            (group, world.hooks.take(memory).await)
        };
        let mut turn = pin!(turn);
        let (_group, place) = loop {
            tokio::select! {
                biased;
                turn = &mut turn => break turn,
                () = self.changes.next() => {}
            }
            match self.resolve().1 {
                Decision::RunAction(again) if waits_for_the_same(run, &again) => {}
                _ => return Ok(Step::Acted),
            }
        };
        let Some(place) = place else { return Ok(Step::Stopped) };
        match self.resolve() {
            (view, Decision::RunAction(again))
                if again.group == run.group && place.is_enough_for(hook::memory(&view, &self.name)) =>
            {
                self.action(*again).await
            }
            _ => Ok(Step::Acted),
        }
    }

    async fn hook(&mut self, view: View, run: &HookRun, crashed: bool) -> Result<Step, RunnerError> {
        let (unit, operation) = (self.name.clone(), run.operation());
        let step = if crashed {
            let ran = hook::failed(run, Timestamp::now(), CRASHED.to_owned());
            self.commit_hook(run, ran).await
        } else {
            self.world.link.tell(ToKeeper::HookStarted { unit: unit.clone(), operation }).await;
            match self.begin(run).await? {
                Ok(run) => {
                    self.leave(periapt_uniter::before_hook(&run));
                    tracing::debug!(%unit, hook = %run.event, attempt = run.attempt, "running a hook");
                    let ran = hook::run(&self.world, view, &run, &self.outbox).await;
                    self.commit_hook(&run, ran).await
                }
                Err(step) => Ok(step),
            }
        };
        self.world.link.tell(ToKeeper::HookEnded { unit, operation }).await;
        step
    }

    /// Puts it on record that a hook is about to run, if it may leave traces that no commit undoes; the step instead, if
    /// it is not to run.
    async fn begin(&mut self, run: &HookRun) -> Result<Result<HookRun, Step>, RunnerError> {
        if !run.must_begin() {
            return Ok(Ok(run.clone()));
        }
        let (progress, begun) = periapt_uniter::begin(run);
        Ok(match self.commit(run.record.seq, &progress, Outcome::default()).await? {
            Committed::Done => Ok(begun),
            Committed::Stale | Committed::Replaced => Err(Step::Acted),
            Committed::Refused(refusal) => Err(self.refused(&refusal).await?),
        })
    }

    async fn commit_hook(&mut self, run: &HookRun, mut ran: Ran) -> Result<Step, RunnerError> {
        // The second time it is a failure that is committed; should that be refused, too, the unit waits.
        for _ in 0..2 {
            let progress = periapt_uniter::hook_ended(run, ran.end.clone(), self.timer_now(), jitter());
            if progress.only_rearms(run) && ran.outcome.effects.is_empty() {
                let due = progress.record.update_status_due;
                self.rearmed = Some(Rearmed { seq: run.record.seq, due });
                if let Some(journal) = &ran.outcome.journal {
                    self.uncommitted.count(&journal.outcome, &journal.costs);
                }
                return Ok(Step::Acted);
            }
            self.leave(progress.early.clone());
            match self.commit(run.record.seq, &progress, ran.outcome.clone()).await? {
                Committed::Done | Committed::Stale | Committed::Replaced => return Ok(Step::Acted),
                Committed::Refused(refusal) => {
                    let failed = matches!(ran.end, HookEnd::Failed { .. });
                    let message = format!("the hook's effects were refused: {}", refusal.message);
                    ran = hook::refused(ran.outcome, &ran.end, message);
                    if failed {
                        return self.refused(&refusal).await;
                    }
                }
            }
        }
        Ok(Step::Acted)
    }

    async fn deploy(&mut self, run: &DeployRun) -> Result<Step, RunnerError> {
        let charm = run.charm;
        let same = |decision: &Decision| matches!(decision, Decision::Deploy(again) if again.charm == charm);
        let progress = match self.charm_in_place(charm.digest, same).await {
            // The unit is to run another by now, or none.
            None => return Ok(Step::Acted),
            Some(Ok(_loaded)) => periapt_uniter::deployed(run),
            Some(Err(message)) => periapt_uniter::deploy_failed(run, &message, self.timer_now(), jitter()),
        };
        self.leave(progress.early.clone());
        match self.commit(run.record.seq, &progress, Outcome::default()).await? {
            Committed::Done | Committed::Stale | Committed::Replaced => Ok(Step::Acted),
            Committed::Refused(refusal) => self.refused(&refusal).await,
        }
    }

    async fn bookkeep(&mut self, view: &View, progress: &Progress) -> Result<Step, RunnerError> {
        let Some(seq) = view.units.get(&self.name).map(|unit| unit.record.seq) else {
            return Ok(Step::Acted);
        };
        self.leave(progress.early.clone());
        let skipped = progress.skipped.as_ref();
        let journal = skipped.and_then(|skipped| skipped.journal(view, &self.name, Timestamp::now()));
        let outcome = Outcome { journal, ..Outcome::default() };
        match self.commit(seq, progress, outcome).await? {
            Committed::Done | Committed::Stale | Committed::Replaced => Ok(Step::Acted),
            Committed::Refused(refusal) => self.refused(&refusal).await,
        }
    }

    pub(super) async fn commit(
        &mut self,
        seq: u64,
        progress: &Progress,
        outcome: Outcome,
    ) -> Result<Committed, RunnerError> {
        let mut outcome = Outcome { uncommitted_usage: self.uncommitted, ..outcome };
        // Their times are counted from here, by the clock that they are waited for with.
        outcome.effects.events.asked_at(self.timer_now());
        let committed = commit(&self.world, &self.name, &self.outbox, seq, progress, outcome).await?;
        if matches!(committed, Committed::Done) {
            self.refusals.succeeded();
            self.uncommitted = Usage::default();
        }
        Ok(committed)
    }

    /// A refused commit is dropped: what made the controller refuse it is on its way in the stream.
    pub(super) async fn refused(&mut self, refusal: &Refusal) -> Result<Step, RunnerError> {
        let wait = self.refusals.failed();
        tracing::warn!(unit = %self.name, %refusal, ?wait, "a commit was refused");
        tokio::select! {
            () = self.changes.next() => {}
            () = sleep(wait) => {}
        }
        Ok(Step::Acted)
    }

    fn report_idle(&mut self, view: &View) {
        let seq = view.units.get(&self.name).map(|unit| unit.record.seq);
        if self.idle_at != seq {
            self.idle_at = seq;
            self.leave(periapt_uniter::idle_effect(view, &self.name));
        }
    }

    /// A failure that waits for `resolved` is to be seen, whatever a runner before this one said last.
    fn report_failure(&mut self, view: &View) {
        let seq = view.units.get(&self.name).map(|unit| unit.record.seq);
        if self.failure_at != seq {
            self.failure_at = seq;
            self.leave(periapt_uniter::hidden_failure(view, &self.name));
        }
    }

    /// What all units share.
    pub(super) fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// The newest view; what changes after it wakes the unit.
    pub(super) fn newest_view(&mut self) -> View {
        self.changes.view()
    }

    pub(super) fn leave(&self, effects: impl IntoIterator<Item = EarlyEffect>) {
        let now = Timestamp::now();
        self.outbox.push(effects.into_iter().map(|effect| (now, effect)));
    }

    /// The present time for the unit's timers, which nobody sets; times for people are the wall clock's.
    fn timer_now(&self) -> Timestamp {
        clock::timer_now(self.world.start.timeline)
    }

    async fn rest(&mut self, wake_at: Option<Timestamp>) {
        let timeline = self.world.start.timeline;
        let wait = wake_at.map_or(CLOCK_CHECK, |at| clock::until(timeline, at).min(CLOCK_CHECK));
        tokio::select! {
            () = self.changes.next() => {}
            () = sleep(wait) => {}
        }
    }
}

/// Whether the turn that one run of an action waits for is that of another: of the same task, with nothing that it is
/// to wait for changed.
fn waits_for_the_same(run: &ActionRun, again: &ActionRun) -> bool {
    (run.task, &run.group, run.run.charm) == (again.task, &again.group, again.run.charm)
}

/// Spreads waits; nothing secret hangs on it, so a system without randomness gets the middle.
fn jitter() -> Jitter {
    getrandom::u64().map_or(Jitter::NONE, Jitter::from_random)
}
