//! One unit's executor: the agent's, in steps between which anything may happen.

use std::collections::BTreeMap;

use periapt_host_api::{
    CharmDigest, LeaderTerm, OperationId, Revision, TaskId, Timestamp, UnitName,
    commit::{EarlyEffect, HookEffects, UnitCommit},
    journal::JournalRecord,
    record::CharmRef,
    view::View,
};
use periapt_uniter::{
    ActionEnd, ActionRun, Decision, DeployRun, HookEnd, HookRun, Jitter, Progress, Skipped,
};

use super::{Agent, outbox::Outbox};
use crate::{
    Charm, LabError,
    chance::Chance,
    charm::Action,
    clock::Clock,
    controller::Controller,
    trace::{Fate, Trace, TraceId, Traced},
};

mod commit;
mod hook;

/// What a step of a unit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was done; ask again.
    Acted,
    /// Nothing can be done now.
    Rest {
        /// When the clock alone changes that.
        wake_at: Option<Timestamp>,
    },
    /// The unit is looked after no more.
    Stopped,
}

/// The laboratory, as one unit's executor uses it.
pub(crate) struct World<'a> {
    pub(crate) clock: &'a mut Clock,
    pub(crate) chance: &'a mut Chance,
    pub(crate) controller: &'a mut Controller,
    pub(crate) agent: &'a mut Agent,
    pub(crate) charms: &'a BTreeMap<CharmDigest, Charm>,
    pub(crate) scripts: &'a BTreeMap<(UnitName, String), Vec<Action>>,
    pub(crate) trace: &'a mut Trace,
    /// How often, in a thousand, a commit's answer is lost on the way.
    pub(crate) lost_answers: u16,
}

impl World<'_> {
    /// The present time for a unit's timers, which nobody sets.
    fn timer_now(&self) -> Timestamp {
        self.agent.timeline.at(self.clock.boot_ms())
    }
}

/// What goes with a unit's progress.
#[derive(Debug, Clone, Default)]
struct Outcome {
    effects: HookEffects,
    leader_term: Option<LeaderTerm>,
    journal: Option<JournalRecord>,
}

/// How far a unit's operation is.
#[derive(Debug, Clone, Default)]
enum Flight {
    /// Nothing is in progress.
    #[default]
    None,
    /// The beginning of an action was committed, and it has not run.
    Begun(Box<ActionRun>),
    /// A hook was decided, and has not run.
    Started { view: Box<View>, run: Box<HookRun> },
    /// It ran, and is not committed.
    Ran(Box<Flown>),
    /// A commit is under way, or its answer is.
    Committing { commit: Box<UnitCommit>, about: About, taken: bool },
}

/// A hook that ran.
#[derive(Debug, Clone)]
struct Flown {
    run: HookRun,
    end: HookEnd,
    /// What became of its task, of an action.
    action: Option<(TaskId, ActionEnd)>,
    outcome: Outcome,
    traced: TraceId,
}

/// What a commit is about.
#[derive(Debug, Clone)]
enum About {
    Hook(Box<Flown>),
    /// The beginning of an action.
    Begin(Box<ActionRun>),
    /// That a hook is about to run, which then runs on this view.
    BeginHook(Box<View>, Box<HookRun>),
    /// A hook that is not run, and its fate once that is committed.
    Passed(TraceId, Fate),
    Bookkeeping,
}

/// One unit's executor.
#[derive(Debug, Clone)]
pub(crate) struct Executor {
    name: UnitName,
    pub(crate) outbox: Outbox,
    flight: Flight,
    /// The `seq` that the mirror must have reached: a unit sees its own last commit.
    needs: u64,
    /// When update-status is due, decided by a run at this `seq` that had nothing to write.
    rearmed: Option<(u64, Option<Timestamp>)>,
    /// The `seq` at which idle was reported.
    idle_at: Option<u64>,
    /// The view on which a commit was refused, and until when that holds it up.
    refused: Option<(Revision, Timestamp)>,
    /// A charm that was replaced while it was brought into place: nothing is due until the view shows another.
    replaced: Option<CharmRef>,
    /// The view that the operation in progress was decided on.
    decided_on: Revision,
    pub(crate) wake_at: Option<Timestamp>,
}

impl Executor {
    /// Stands where the unit's record says.
    pub(crate) fn new(name: UnitName, last_number: u64) -> Self {
        Self {
            outbox: Outbox::new(name.clone(), last_number),
            name,
            flight: Flight::None,
            needs: 0,
            rearmed: None,
            idle_at: None,
            refused: None,
            replaced: None,
            decided_on: Revision::default(),
            wake_at: None,
        }
    }

    /// Whether an operation is in progress.
    pub(crate) fn is_in_flight(&self) -> bool {
        !matches!(self.flight, Flight::None)
    }

    /// Whose it is.
    pub(crate) fn name(&self) -> &UnitName {
        &self.name
    }

    /// What decides on its next step, beside the view; `seq` is the unit's now.
    pub(crate) fn standing(&self, seq: Option<u64>, timer_now: Timestamp, view: &View) -> String {
        // A commit that starts from another record is dropped, whatever it says.
        let fresh = |from: u64, what: String| if seq == Some(from) { what } else { "stale".to_owned() };
        let flight = match &self.flight {
            Flight::None => "none".to_owned(),
            Flight::Begun(run) => fresh(run.run.record.seq, format!("begun {}", run.task)),
            Flight::Started { run, .. } => {
                fresh(run.record.seq, format!("started {:?} {:?}", run.event, run.seen))
            }
            Flight::Ran(flown) => {
                let Flown { run, end, outcome, .. } = &**flown;
                let what = format!("ran {:?} {:?} {end:?} {:?}", run.event, run.seen, outcome.effects);
                fresh(run.record.seq, what)
            }
            // One that was taken is stale, and is still answered as it was.
            Flight::Committing { taken: true, .. } => "taken".to_owned(),
            Flight::Committing { commit, .. } => {
                fresh(commit.seq, format!("committing {:?} {:?}", commit.transitions, commit.effects))
            }
        };
        let waits = self.refused.is_some_and(|(on, until)| on == view.revision && timer_now < until);
        let needs = view.units.get(&self.name).is_some_and(|unit| unit.record.seq < self.needs);
        format!("{flight}; {waits} {needs} {}", self.replaced.is_some())
    }

    /// Whether a hook ran that is not committed.
    pub(crate) fn has_run(&self) -> bool {
        matches!(self.flight, Flight::Ran(_))
    }

    /// Its hook that was not committed yet, for the runner died.
    pub(crate) fn lost(&self) -> Option<TraceId> {
        match &self.flight {
            Flight::Ran(flown) => Some(flown.traced),
            Flight::Committing { about: About::Hook(flown), taken: false, .. } => Some(flown.traced),
            Flight::Committing { about: About::Passed(traced, _), taken: false, .. } => Some(*traced),
            Flight::None | Flight::Begun(_) | Flight::Started { .. } | Flight::Committing { .. } => None,
        }
    }

    /// Does the next step of the operation in progress, or decides on one.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Result<Step, LabError> {
        let step = match std::mem::take(&mut self.flight) {
            Flight::None => self.decide(world),
            Flight::Begun(run) => Ok(self.start_action(world, run)),
            Flight::Started { view, run } => self.run(world, *view, *run),
            Flight::Ran(flown) => self.conclude(world, *flown),
            Flight::Committing { commit, about, taken } => self.deliver(world, commit, about, taken),
        };
        self.wake_at = match step {
            Ok(Step::Rest { wake_at }) => wake_at,
            _ => None,
        };
        step
    }

    fn decide(&mut self, world: &mut World<'_>) -> Result<Step, LabError> {
        let mut view = world.agent.view();
        if let Some((revision, until)) = self.refused
            && revision == view.revision
            && world.timer_now() < until
        {
            return Ok(Step::Rest { wake_at: Some(until) });
        }
        let wanted = view.applications.get(self.name.application()).map(|application| application.charm);
        if wanted.is_some() && wanted == self.replaced {
            return Ok(Step::Rest { wake_at: None });
        }
        self.replaced = None;
        match (view.units.get_mut(&self.name), self.rearmed) {
            (Some(unit), _) if unit.record.seq < self.needs => return Ok(Step::Rest { wake_at: None }),
            (Some(unit), Some((seq, due))) if unit.record.seq == seq => unit.record.update_status_due = due,
            _ => self.rearmed = None,
        }
        self.refused = None;
        self.decided_on = view.revision;
        let now = world.clock.now();
        match periapt_uniter::resolve(&view, &self.name, world.timer_now()) {
            Decision::Stop => return Ok(Step::Stopped),
            Decision::RunHook(run) => {
                if run.must_begin() {
                    let seq = run.record.seq;
                    let (progress, run) = periapt_uniter::begin(&run);
                    let about = About::BeginHook(Box::new(view), Box::new(run));
                    self.commit(world, seq, &progress, Outcome::default(), about);
                } else {
                    self.start(now, Box::new(view), run);
                }
            }
            // One hook at a time is in flight here, so every group's turn has come.
            Decision::RunAction(run) => {
                let seq = run.run.record.seq.saturating_sub(1);
                let begin = run.begin.clone();
                self.commit(world, seq, &begin, Outcome::default(), About::Begin(run));
            }
            Decision::Deploy(run) => self.deploy(world, &run),
            Decision::Commit(progress) => {
                let Some(unit) = view.units.get(&self.name) else { return Ok(Step::Stopped) };
                let about = match &progress.skipped {
                    Some(skipped) => {
                        let fate = match skipped {
                            Skipped::Resolved(_) => Fate::PassedOver,
                            Skipped::Moot(_) => Fate::Moot,
                        };
                        About::Passed(self.trace_passed(world, &view, &progress, skipped), fate)
                    }
                    None => About::Bookkeeping,
                };
                let skipped = progress.skipped.as_ref();
                let journal = skipped.and_then(|skipped| skipped.journal(&view, &self.name, now));
                let outcome = Outcome { journal, ..Outcome::default() };
                self.commit(world, unit.record.seq, &progress, outcome, about);
            }
            Decision::Wait { wake_at } => return Ok(Step::Rest { wake_at }),
            Decision::Idle { wake_at } => {
                let seq = view.units.get(&self.name).map(|unit| unit.record.seq);
                if self.idle_at != seq {
                    self.idle_at = seq;
                    self.leave(now, periapt_uniter::idle_effect(&view, &self.name));
                }
                return Ok(Step::Rest { wake_at });
            }
        }
        Ok(Step::Acted)
    }

    fn start(&mut self, now: Timestamp, view: Box<View>, run: Box<HookRun>) {
        self.leave(now, periapt_uniter::before_hook(&run));
        self.flight = Flight::Started { view, run };
    }

    fn deploy(&mut self, world: &mut World<'_>, run: &DeployRun) {
        let fault = match world.charms.get(&run.charm.digest) {
            Some(charm) => charm.fault(),
            None => Some("no such archive"),
        };
        let progress = match fault {
            None => periapt_uniter::deployed(run),
            Some(fault) => {
                let jitter = jitter(world.chance);
                periapt_uniter::deploy_failed(run, fault, world.timer_now(), jitter)
            }
        };
        self.commit(world, run.record.seq, &progress, Outcome::default(), About::Bookkeeping);
    }

    fn trace_passed(
        &self,
        world: &mut World<'_>,
        view: &View,
        progress: &Progress,
        skipped: &Skipped,
    ) -> TraceId {
        world.trace.push(Traced {
            at: world.clock.now(),
            unit: self.name.clone(),
            event: skipped.event().clone(),
            attempt: 0,
            operation: OperationId(progress.record.seq.saturating_sub(1)),
            snapshot: view.revision,
            ending: None,
            fate: Fate::InFlight,
            coalesced: Vec::new(),
            tools: Vec::new(),
        })
    }

    fn leave(&mut self, now: Timestamp, effects: impl IntoIterator<Item = EarlyEffect>) {
        self.outbox.push(now, effects.into_iter().map(|effect| (now, effect)));
    }
}

fn jitter(chance: &mut Chance) -> Jitter {
    Jitter::from_random(chance.number())
}
