//! Drives the executors of an agent's units on virtual time, in steps between which anything may happen.
//!
//! What the runner does with threads, a link and timers is done here at once, or in a later step: a charm arrives when it
//! is asked for, a turn comes when its group is free, a hook runs in one step, is told to have ended in the next, and its
//! commit is sent in the one after.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use periapt_host_api::{
    Digest, MachineId, Revision, Timestamp, UnitName,
    agent::RunnerCommand,
    commit::{EarlyItem, UnitCommit},
    view::View,
};
use periapt_uniter::{
    Jitter,
    executor::{Answer, CharmAnswer, Command, Executor, Input, Now, Options, Run, RunReport, Turn, Wake},
};

use super::Agent;
use crate::{
    Charm, Defect, LabError,
    chance::Chance,
    charm::Action,
    clock::Clock,
    controller::Controller,
    trace::{Trace, TraceId},
};

mod commit;
mod hook;

/// What the laboratory runs hooks with, as the journal names it.
const ENGINE: &str = "laboratory";

/// What a step of a unit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Something was done; ask again.
    Acted,
    /// Nothing can be done now.
    Rest,
    /// The unit is looked after no more.
    Stopped,
    /// The whole runner ends: another one looks after its units.
    Revoked,
}

/// The laboratory, as one unit's driver uses it.
pub(crate) struct World<'a> {
    pub(crate) clock: &'a mut Clock,
    pub(crate) chance: &'a mut Chance,
    pub(crate) controller: &'a mut Controller,
    pub(crate) agent: &'a mut Agent,
    pub(crate) charms: &'a BTreeMap<Digest, Charm>,
    pub(crate) scripts: &'a BTreeMap<(UnitName, String), Vec<Action>>,
    pub(crate) trace: &'a mut Trace,
    /// How often, in a thousand, a commit's answer is lost on the way.
    pub(crate) lost_answers: u16,
    pub(crate) defect: Option<Defect>,
}

impl World<'_> {
    fn now(&self) -> Now {
        self.agent.time(*self.clock)
    }
}

/// A group of actions on a machine.
pub(crate) type Group = (MachineId, String);

/// Who runs an action of a group, and who waits for that, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups(BTreeMap<Group, VecDeque<UnitName>>);

impl Groups {
    /// Whether it is a unit's turn, which queues for it if it does not yet.
    fn enter(&mut self, group: &Group, unit: &UnitName) -> bool {
        let queue = self.0.entry(group.clone()).or_default();
        if !queue.contains(unit) {
            queue.push_back(unit.clone());
        }
        queue.front() == Some(unit)
    }

    fn leave(&mut self, unit: &UnitName) {
        self.0.values_mut().for_each(|queue| queue.retain(|other| other != unit));
        self.0.retain(|_, queue| !queue.is_empty());
    }
}

/// A hook that ran, and is not told to have ended.
#[derive(Debug, Clone)]
struct Flown {
    run: Box<Run>,
    report: Box<RunReport>,
}

/// What is to be done in a step of its own.
#[derive(Debug, Clone)]
enum Task {
    Run { run: Box<Run>, interrupted: bool },
    Commit(Box<UnitCommit>),
}

/// A unit's executor, and what of its commands is under way.
#[derive(Debug, Clone)]
pub(crate) struct Driver {
    executor: Executor,
    begun: bool,
    tasks: VecDeque<Task>,
    flown: Option<Flown>,
    /// The group whose turn is waited for.
    awaits: Option<Group>,
    /// The run whose commit is not decided yet.
    traced: Option<TraceId>,
    /// The record that a commit which passes over a hook started from, when it was first sent.
    passed: Option<u64>,
    /// Whether the commit under way was taken, and its answer lost.
    taken: bool,
    /// What the keeper was told of, in case the runner dies before the controller has it.
    noted: Vec<EarlyItem>,
    wake: Wake,
    stopped: bool,
    revoked: bool,
    /// The view that the operation in progress was decided on.
    decided_on: Revision,
    /// The `seq` of the record that the last accepted commit left.
    committed: u64,
}

impl Driver {
    /// Stands where the unit's record says.
    pub(super) fn new(agent: &Agent, unit: UnitName, last_number: u64) -> Self {
        let options = Options { unit, incarnation: agent.incarnation, engine: ENGINE.into(), last_number };
        Self {
            executor: Executor::new(options),
            begun: false,
            tasks: VecDeque::new(),
            flown: None,
            awaits: None,
            traced: None,
            passed: None,
            taken: false,
            noted: Vec::new(),
            wake: Wake::default(),
            stopped: false,
            revoked: false,
            decided_on: Revision::default(),
            committed: 0,
        }
    }

    /// Whether an operation is in progress.
    pub(crate) fn is_in_flight(&self) -> bool {
        !self.tasks.is_empty() || self.flown.is_some() || self.executor.is_in_flight()
    }

    /// Returns whether a frame can change what its executor does next.
    pub(super) fn waits_for_frames(&self) -> bool {
        self.executor.waits_for_frames()
    }

    /// Whose it is.
    pub(crate) fn name(&self) -> &UnitName {
        self.executor.unit()
    }

    /// Whether a hook ran that is not committed.
    pub(crate) fn has_run(&self) -> bool {
        self.flown.is_some()
    }

    /// Its hook that was not committed yet, for the runner died.
    pub(crate) fn lost(&self) -> Option<TraceId> {
        self.traced.filter(|_| !self.taken)
    }

    /// When the clock alone makes something happen.
    pub(crate) fn wake(&self) -> Wake {
        self.wake
    }

    /// When early effects are sent, if no commit takes them along.
    pub(crate) fn early_due(&self) -> Option<Duration> {
        self.executor.early_due()
    }

    /// What its keeper sends when the runner dies.
    pub(super) fn last_words(&mut self) -> Vec<EarlyItem> {
        std::mem::take(&mut self.noted)
    }

    /// What decides on its next step, beside the view; `seq` is the unit's now.
    pub(crate) fn standing(&self, seq: Option<u64>, now: Now, view: &View) -> String {
        // A commit that starts from another record is dropped, whatever it says.
        let fresh = |from: u64, what: String| if seq == Some(from) { what } else { "stale".to_owned() };
        let flight = match (&self.flown, self.tasks.front()) {
            (Some(Flown { run, report }), _) => {
                let (run, report) = (&run.run, &**report);
                let RunReport { returned, effects, .. } = report;
                let what = format!("ran {:?} {:?} {returned:?} {effects:?}", run.event, run.seen);
                fresh(run.record.seq, what)
            }
            (None, Some(Task::Run { run, .. })) => {
                let run = &run.run;
                fresh(run.record.seq, format!("started {:?} {:?}", run.event, run.seen))
            }
            // One that was taken is stale, and is still answered as it was.
            (None, Some(Task::Commit(_))) if self.taken => "taken".to_owned(),
            (None, Some(Task::Commit(commit))) => {
                fresh(commit.seq, format!("committing {:?} {:?}", commit.transitions, commit.effects))
            }
            (None, None) => "none".to_owned(),
        };
        let waits = self.executor.is_held_up() && !self.is_due(now);
        let behind = view.units.get(self.name()).is_some_and(|unit| unit.record.seq < self.committed);
        format!("{flight}; {waits} {behind} {}", self.executor.is_settling())
    }

    fn is_due(&self, now: Now) -> bool {
        self.wake.at.is_some_and(|at| at <= now.timer) || self.wake.after.is_some_and(|at| at <= now.steady)
    }

    /// Does the next step of the operation in progress, or decides on one.
    pub(crate) fn step(&mut self, world: &mut World<'_>) -> Result<Step, LabError> {
        let acted = self.next(world)?;
        Ok(match acted {
            _ if self.revoked => Step::Revoked,
            _ if self.stopped => Step::Stopped,
            true => Step::Acted,
            false => Step::Rest,
        })
    }

    fn next(&mut self, world: &mut World<'_>) -> Result<bool, LabError> {
        if let Some(Flown { report, .. }) = self.flown.take() {
            let jitter = jitter(world.chance);
            let traced = self.traced;
            self.feed(Input::Ended { report, jitter }, world)?;
            self.had_nothing_to_commit(traced, world);
            return Ok(true);
        }
        if world.agent.touched.remove(self.name()) {
            self.feed(Input::Touched, world)?;
            if self.is_in_flight() {
                return Ok(true);
            }
        }
        match self.tasks.pop_front() {
            Some(Task::Run { run, interrupted }) => return self.run(run, interrupted, world).map(|()| true),
            Some(Task::Commit(commit)) => return self.deliver(commit, world),
            None => {}
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.feed(Input::Begin, world)?;
        } else if let Some(group) = self.awaits.clone() {
            if world.agent.groups.enter(&group, self.name()) {
                self.awaits = None;
                self.feed(Input::Turn, world)?;
            }
        } else {
            self.pass_the_wait_for_an_answer(world);
            if self.is_due(world.now()) {
                self.feed(Input::Woken, world)?;
            }
        }
        Ok(!self.tasks.is_empty())
    }

    /// A commit whose answer was lost is sent again after a moment, which passes for this agent's short waits alone.
    fn pass_the_wait_for_an_answer(&self, world: &mut World<'_>) {
        if self.executor.is_committing() && world.agent.is_up() {
            world.agent.pass_short_waits(*world.clock, self.wake.after);
        }
    }

    /// Tells the executor what happened, and carries out what it says, as far as that takes no step of its own.
    pub(crate) fn feed(&mut self, input: Input, world: &mut World<'_>) -> Result<(), LabError> {
        if !self.is_in_flight() {
            self.decided_on = world.agent.revision();
        }
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let commands = self.executor.handle(input, &world.agent.view(), world.now());
            for command in commands {
                inputs.extend(self.carry_out(command, world)?);
            }
        }
        Ok(())
    }

    /// What follows at once, if anything does.
    fn carry_out(&mut self, command: Command, world: &mut World<'_>) -> Result<Vec<Input>, LabError> {
        Ok(match command {
            Command::FetchCharm(digest) => vec![Input::Charm(fetched(digest, world))],
            Command::TakeTurn(Turn { group, .. }) => match group {
                Some(group) if !world.agent.groups.enter(&group, self.name()) => {
                    self.awaits = Some(group);
                    Vec::new()
                }
                _ => vec![Input::Turn],
            },
            Command::LeaveTurn => {
                self.awaits = None;
                world.agent.groups.leave(self.name());
                Vec::new()
            }
            Command::Run(run) => {
                let task = Task::Run { run, interrupted: false };
                match world.defect {
                    Some(Defect::NextBeforeAnswer) => self.tasks.push_front(task),
                    _ => self.tasks.push_back(task),
                }
                Vec::new()
            }
            Command::Interrupt => {
                if let Some(Task::Run { interrupted, .. }) = self.tasks.back_mut() {
                    *interrupted = true;
                }
                Vec::new()
            }
            Command::Commit(commit) => self.send(commit, world),
            Command::SendEarly(items) => vec![Input::EarlyAnswered(self.send_early(items, world)?)],
            Command::Note(items) => {
                self.noted.extend(items);
                Vec::new()
            }
            Command::WakeAt(wake) => {
                self.wake = wake;
                Vec::new()
            }
            Command::Depend(change) => {
                world.agent.dependents.change(self.executor.unit(), change);
                Vec::new()
            }
            Command::Stop => {
                self.stopped = true;
                Vec::new()
            }
            Command::Revoked => {
                self.revoked = true;
                Vec::new()
            }
            // It is there at once; and no laboratory dies of a hook.
            Command::ForgetCharm | Command::Started(_) | Command::Ended(_) | Command::Tried(_) => Vec::new(),
        })
    }

    fn send_early(&mut self, items: Vec<EarlyItem>, world: &mut World<'_>) -> Result<Answer, LabError> {
        if !world.agent.is_up() {
            return Ok(Answer::Unreachable);
        }
        let sent = items.last().map_or(0, |item| item.number);
        let (unit, incarnation) = (self.name().clone(), world.agent.incarnation);
        let command = RunnerCommand::Early { unit, incarnation, items };
        match world.agent.call(world.controller, *world.clock, command) {
            Ok(_) => {
                self.noted.retain(|item| item.number > sent);
                Ok(Answer::Accepted)
            }
            // The unit is not this runner's any more.
            Err(LabError::Refused(refusal)) => Ok(Answer::Refused(refusal)),
            Err(other) => Err(other),
        }
    }
}

fn fetched(digest: Digest, world: &mut World<'_>) -> CharmAnswer {
    let fault = match world.charms.get(&digest) {
        Some(charm) => charm.fault(),
        None => Some("no such archive"),
    };
    match fault {
        None => CharmAnswer::Ready,
        Some(fault) => CharmAnswer::Unusable { message: fault.to_owned(), jitter: jitter(world.chance) },
    }
}

fn jitter(chance: &mut Chance) -> Jitter {
    Jitter::from_random(chance.number())
}

impl Agent {
    /// The time of this agent's units.
    pub(crate) fn time(&self, clock: Clock) -> Now {
        Now {
            wall: clock.now(),
            timer: self.timer_now(clock),
            steady: Duration::from_millis(clock.boot_ms()).saturating_add(self.ahead),
        }
    }

    /// The present time for units' timers, which nobody sets.
    fn timer_now(&self, clock: Clock) -> Timestamp {
        self.timeline.at(clock.boot_ms())
    }

    /// What the clock of leases shows when a unit is to be woken, in milliseconds.
    pub(crate) fn wakes_at_ms(&self, wake: Wake) -> impl Iterator<Item = u64> {
        let after = wake.after.map(|after| after.saturating_sub(self.ahead));
        let after = after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        wake.at.map(|at| self.timeline.boot_ms(at)).into_iter().chain(after)
    }

    /// Lets this agent's short waits pass, up to a time of its steady clock; for nobody else time goes by.
    pub(crate) fn pass_short_waits(&mut self, clock: Clock, until: Option<Duration>) {
        let boot = Duration::from_millis(clock.boot_ms());
        if let Some(until) = until {
            self.ahead = self.ahead.max(until.saturating_sub(boot));
        }
    }
}
