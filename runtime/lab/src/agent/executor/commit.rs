//! One commit, sent until it is known what became of it.

use periapt_host_api::{
    ErrorCode, Refusal,
    agent::RunnerCommand,
    commit::UnitCommit,
    journal::{HookOutcome, JournalRecord},
    record::CharmRef,
};
use periapt_uniter::{HookEnd, Progress};

use super::{About, Executor, Flight, Outcome, Step, World};
use crate::{LabError, clock::later, trace::Fate};

/// How long a refused unit waits if its view stays as it is: the longest back-off of the agent.
const REFUSED_FOR_MS: u64 = 30_000;

impl Executor {
    pub(super) fn commit(
        &mut self,
        world: &mut World<'_>,
        seq: u64,
        progress: &Progress,
        mut outcome: Outcome,
        about: About,
    ) {
        outcome.effects.events.asked_at(world.timer_now());
        self.leave(world.clock.now(), progress.early.clone());
        let commit = UnitCommit {
            unit: self.name.clone(),
            seq,
            incarnation: world.agent.incarnation,
            record: progress.record.clone(),
            effects: outcome.effects,
            transitions: progress.transitions.clone(),
            leader_term: outcome.leader_term,
            early: self.outbox.take(),
            journal: outcome.journal,
            uncommitted_usage: periapt_host_api::usage::Usage::default(),
        };
        self.flight = Flight::Committing { commit: Box::new(commit), about, taken: false };
    }

    /// Sends a commit, again and again the same, until it is known what became of it.
    pub(super) fn deliver(
        &mut self,
        world: &mut World<'_>,
        commit: Box<UnitCommit>,
        about: About,
        taken: bool,
    ) -> Result<Step, LabError> {
        if !world.agent.is_up() {
            self.flight = Flight::Committing { commit, about, taken };
            return Ok(Step::Rest { wake_at: None });
        }
        let command = RunnerCommand::Commit(commit.clone());
        match world.agent.call(world.controller, *world.clock, command) {
            Ok(_) => {
                self.note(world, &about, accepted(&about));
                if !taken && world.chance.in_thousand(world.lost_answers) {
                    self.flight = Flight::Committing { commit, about, taken: true };
                } else {
                    self.needs = commit.record.seq;
                    match about {
                        About::Begin(run) => self.flight = Flight::Begun(run),
                        About::BeginHook(view, run) => self.start(world.clock.now(), view, run),
                        About::Hook(_) | About::Passed(..) | About::Bookkeeping => {}
                    }
                    world.agent.catch_up(world.controller)?;
                }
                Ok(Step::Acted)
            }
            Err(LabError::Refused(refusal)) if taken => {
                match world.agent.exists(world.controller, &self.name) {
                    true => {
                        Err(LabError::AnswerChanged { unit: self.name.clone(), reason: refusal.to_string() })
                    }
                    // It was removed after its commit had been taken.
                    false => Ok(Step::Acted),
                }
            }
            Err(LabError::Refused(refusal)) => {
                self.outbox.put_back(world.clock.now(), commit.early);
                match refusal.code {
                    ErrorCode::Stale => self.stale(world, &about, &refusal),
                    ErrorCode::CharmReplaced => Ok(self.replaced(world, &about, commit.record.charm)),
                    _ => self.refused(world, about, &refusal),
                }
            }
            Err(other) => Err(other),
        }
    }

    /// The commit does not follow: it is dropped, and what made it stale is on its way in the stream.
    fn stale(&mut self, world: &mut World<'_>, about: &About, refusal: &Refusal) -> Result<Step, LabError> {
        self.note(world, about, Fate::Stale);
        if world.controller.root().revision() == self.decided_on {
            return Err(LabError::StaleForNothing { unit: self.name.clone(), reason: refusal.to_string() });
        }
        world.agent.catch_up(world.controller)?;
        Ok(Step::Acted)
    }

    /// The charm that was brought into place is wanted no more: nothing is due before a frame shows the other one.
    fn replaced(&mut self, world: &mut World<'_>, about: &About, charm: Option<CharmRef>) -> Step {
        self.note(world, about, Fate::Stale);
        self.replaced = charm;
        Step::Acted
    }

    /// A hook whose commit is refused failed (C-3). Anything else that is refused is dropped: what made the
    /// controller refuse it is on its way.
    fn refused(&mut self, world: &mut World<'_>, about: About, refusal: &Refusal) -> Result<Step, LabError> {
        self.note(world, &about, Fate::Refused);
        match about {
            About::Hook(flown) if !matches!(flown.end, HookEnd::Failed { .. }) => {
                let mut flown = *flown;
                let message = format!("the hook's effects were refused: {}", refusal.message);
                let status_set = match flown.end {
                    HookEnd::Handled { status_set }
                    | HookEnd::Unhandled { status_set }
                    | HookEnd::Failed { status_set, .. } => status_set,
                };
                let journal = flown.outcome.journal.take().map(|journal| JournalRecord {
                    outcome: HookOutcome::Failed { message: message.clone() },
                    ..journal
                });
                flown.outcome = Outcome { journal, ..Outcome::default() };
                flown.action = flown.action.map(|(task, end)| (task, end.refused(&refusal.message)));
                flown.end = HookEnd::Failed { message, status_set };
                self.flight = Flight::Ran(Box::new(flown));
                Ok(Step::Acted)
            }
            _ => {
                let until = later(world.timer_now(), REFUSED_FOR_MS);
                self.refused = Some((world.agent.view().revision, until));
                Ok(Step::Rest { wake_at: Some(until) })
            }
        }
    }

    fn note(&self, world: &mut World<'_>, about: &About, fate: Fate) {
        match about {
            About::Hook(flown) => world.trace.decide(flown.traced, fate),
            About::Passed(traced, _) => world.trace.decide(*traced, fate),
            About::Begin(_) | About::BeginHook(..) | About::Bookkeeping => {}
        }
    }
}

/// What it means that a commit was taken.
fn accepted(about: &About) -> Fate {
    match about {
        About::Hook(flown) if matches!(flown.end, HookEnd::Failed { .. }) => Fate::Failed,
        About::Hook(_) | About::Begin(_) | About::BeginHook(..) | About::Bookkeeping => Fate::Committed,
        About::Passed(_, fate) => *fate,
    }
}
