//! Sends a unit's commits, and records the state of their hooks.

use periapt_host_api::{
    ErrorCode, OperationId, Refusal,
    agent::RunnerCommand,
    commit::UnitCommit,
    journal::{HookOutcome, JournalRecord},
    record::UnitRecord,
};
use periapt_uniter::executor::{ExecutorInput, SendOutcome};

use super::{Driver, Task, World, hook::start_of};
use crate::{
    Defect, LabError,
    trace::{HookRunState, TraceId, Traced},
};

impl Driver {
    /// Queues a commit for a step of its own.
    pub(super) fn send(&mut self, commit: Box<UnitCommit>, world: &mut World<'_>) -> Vec<ExecutorInput> {
        let passed = commit.journal.as_ref().filter(|journal| is_no_run(&journal.outcome));
        if let Some(journal) = passed
            && self.passed.replace(commit.seq) != Some(commit.seq)
        {
            self.traced = Some(self.trace_passed(journal, &commit.record, world));
        }
        let accepted = ExecutorInput::CommitAnswered(SendOutcome::Accepted);
        match world.defect {
            Some(Defect::LosesACommit) if self.traced.is_some() => vec![accepted],
            Some(Defect::NextBeforeAnswer) if self.traced.is_some() => {
                self.tasks.push_back(Task::Commit(commit));
                vec![accepted, ExecutorInput::StoreReplaced]
            }
            _ => {
                self.tasks.push_back(Task::Commit(commit));
                Vec::new()
            }
        }
    }

    fn trace_passed(&self, journal: &JournalRecord, record: &UnitRecord, world: &mut World<'_>) -> TraceId {
        world.trace.push(Traced {
            at: world.clock.now(),
            unit: self.name().clone(),
            event: journal.event.clone(),
            attempt: 0,
            operation: OperationId(journal.seq),
            snapshot: journal.snapshot,
            ending: None,
            state: HookRunState::InFlight,
            boot_id: start_of(&journal.event, &record.workloads),
            coalesced: Vec::new(),
            tools: Vec::new(),
        })
    }

    /// Records a hook that ended without a commit as committed.
    pub(super) fn had_nothing_to_commit(&mut self, ran: Option<TraceId>, world: &mut World<'_>) {
        let commits = self.executor.is_committing_a_run();
        if let Some(ran) = ran.filter(|_| !commits && world.defect.is_none()) {
            world.trace.decide(ran, HookRunState::Committed);
            self.traced = self.traced.filter(|traced| *traced != ran);
        }
    }

    /// Sends a commit. The executor sends it again until its outcome is known.
    pub(super) fn deliver(
        &mut self,
        commit: Box<UnitCommit>,
        world: &mut World<'_>,
    ) -> Result<bool, LabError> {
        if !world.agent.is_up() {
            self.feed(ExecutorInput::CommitAnswered(SendOutcome::Unreachable), world)?;
            return Ok(false);
        }
        let command = RunnerCommand::Commit(commit.clone());
        let answer = match world.agent.call(world.controller, *world.clock, command) {
            Ok(_) => {
                self.note(&commit, accepted(&commit), world);
                if !self.taken && world.random.in_thousand(world.lost_answers) {
                    self.taken = true;
                    self.feed(ExecutorInput::CommitAnswered(SendOutcome::Unreachable), world)?;
                    return Ok(true);
                }
                self.committed = commit.record.seq;
                let sent = commit.early.last().map_or(0, |item| item.number);
                self.noted.retain(|item| item.number > sent);
                SendOutcome::Accepted
            }
            Err(LabError::Refused(refusal)) if self.taken => {
                // The unit was removed, or went to another agent, after its commit had been accepted.
                if world.agent.has(world.controller, self.name()) {
                    let (unit, reason) = (self.name().clone(), refusal.to_string());
                    return Err(LabError::AnswerChanged { unit, reason });
                }
                // The run stays as its commit was taken. The executor still tries to commit it as a failure.
                self.traced = None;
                SendOutcome::Refused(refusal)
            }
            Err(LabError::Refused(refusal)) => {
                self.refused(&commit, &refusal, world)?;
                SendOutcome::Refused(refusal)
            }
            Err(other) => return Err(other),
        };
        let news = matches!(&answer, SendOutcome::Accepted)
            || matches!(&answer, SendOutcome::Refused(refusal) if refusal.code == ErrorCode::Stale);
        self.taken = false;
        self.passed = None;
        let decided = self.traced.filter(|_| commit.journal.is_some());
        self.feed(ExecutorInput::CommitAnswered(answer), world)?;
        if world.defect == Some(Defect::ActsOnAnOldView) {
            self.feed(ExecutorInput::StoreReplaced, world)?;
        }
        // A commit that is repeated as a failure is still undecided.
        if decided.is_some() && self.traced == decided && !self.executor.is_committing_a_run() {
            self.traced = None;
        }
        if news {
            world.agent.catch_up(world.controller, *world.clock)?;
        }
        Ok(true)
    }

    fn refused(
        &mut self,
        commit: &UnitCommit,
        refusal: &Refusal,
        world: &mut World<'_>,
    ) -> Result<(), LabError> {
        match refusal.code {
            ErrorCode::Stale => {
                self.note(commit, HookRunState::Stale, world);
                if world.controller.root().revision() == self.decided_on {
                    let (unit, reason) = (self.name().clone(), refusal.to_string());
                    return Err(LabError::StaleForNothing { unit, reason });
                }
            }
            ErrorCode::CharmReplaced => self.note(commit, HookRunState::Stale, world),
            _ => self.note(commit, HookRunState::Refused, world),
        }
        Ok(())
    }

    /// Records the state of a commit's hook.
    fn note(&self, commit: &UnitCommit, state: HookRunState, world: &mut World<'_>) {
        if let Some(traced) = self.traced.filter(|_| commit.journal.is_some()) {
            world.trace.decide(traced, state);
        }
    }
}

fn is_no_run(outcome: &HookOutcome) -> bool {
    matches!(outcome, HookOutcome::Skipped | HookOutcome::Moot)
}

/// Returns the state of a hook whose commit was accepted.
fn accepted(commit: &UnitCommit) -> HookRunState {
    match commit.journal.as_ref().map(|journal| &journal.outcome) {
        Some(HookOutcome::Failed { .. }) => HookRunState::Failed,
        Some(HookOutcome::Skipped) => HookRunState::PassedOver,
        Some(HookOutcome::Moot) => HookRunState::Moot,
        Some(HookOutcome::Handled | HookOutcome::Unhandled) | None => HookRunState::Committed,
    }
}
