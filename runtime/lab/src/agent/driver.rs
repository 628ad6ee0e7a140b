//! The driver of an agent's executors on virtual time, in steps between which any other event may happen.
//!
//! The runner works with threads, a connection and timers. The driver does the same at once, or in a later step: a
//! charm arrives on request, a turn comes when its group is free, a hook runs in one step, its end is reported in the
//! next, and its commit is sent in the one after.

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
    executor::{
        CharmAnswer, Executor, ExecutorCommand, ExecutorInput, Now, Options, Run, RunReport, SendOutcome,
        Turn, Wake,
    },
};

use super::Agent;
use crate::{
    Defect, LabCharm, LabError,
    charm::Action,
    clock::Clock,
    controller::Controller,
    pods::{PodScenario, PodWorld},
    random::RandomNumbers,
    trace::{Trace, TraceId},
};

mod commit;
mod hook;

/// The name of the laboratory's engine in the journal.
const ENGINE: &str = "laboratory";

/// The result of a unit's step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The unit did something. Call again.
    Acted,
    /// The unit can do nothing now.
    Rest,
    /// The runner has stopped managing the unit.
    Stopped,
    /// The whole runner is revoked: another one manages its units.
    Revoked,
}

/// The laboratory, as one unit's driver uses it.
pub(crate) struct World<'a> {
    pub(crate) clock: &'a mut Clock,
    pub(crate) random: &'a mut RandomNumbers,
    pub(crate) controller: &'a mut Controller,
    pub(crate) agent: &'a mut Agent,
    pub(crate) charms: &'a BTreeMap<Digest, LabCharm>,
    pub(crate) scripts: &'a BTreeMap<(UnitName, String), Vec<Action>>,
    pub(crate) containers: &'a PodScenario,
    pub(crate) trace: &'a mut Trace,
    /// The chance, in a thousand, that a commit's answer is lost.
    pub(crate) lost_answers: u16,
    pub(crate) defect: Option<Defect>,
}

impl World<'_> {
    fn now(&self) -> Now {
        self.agent.time(*self.clock)
    }

    /// Returns the agent with the surroundings of its pods.
    pub(crate) fn pods(&mut self) -> (&mut Agent, PodWorld<'_>) {
        let world = PodWorld { clock: *self.clock, scenario: self.containers, random: &mut *self.random };
        (&mut *self.agent, world)
    }
}

/// A group of actions on a machine.
pub(crate) type Group = (MachineId, String);

/// The queues of units by group. The first unit runs an action, the others wait in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups(BTreeMap<Group, VecDeque<UnitName>>);

impl Groups {
    /// Returns true if it is the unit's turn, and queues the unit if it is not queued yet.
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

/// A hook that ran, before its end is reported.
#[derive(Debug, Clone)]
struct FinishedHook {
    run: Box<Run>,
    report: Box<RunReport>,
}

/// A request of the executor to stop a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupt {
    NotRequested,
    Requested,
}

/// Work for a step of its own.
#[derive(Debug, Clone)]
enum Task {
    Run { run: Box<Run>, interrupt: Interrupt },
    Commit(Box<UnitCommit>),
}

/// A unit's executor, with its commands in progress.
#[derive(Debug, Clone)]
pub(crate) struct Driver {
    executor: Executor,
    begun: bool,
    tasks: VecDeque<Task>,
    finished: Option<FinishedHook>,
    /// The group whose turn the unit waits for.
    awaits: Option<Group>,
    /// The run whose commit is not decided yet.
    traced: Option<TraceId>,
    /// The record's `seq` under a commit that skips a hook, when it was first sent.
    passed: Option<u64>,
    /// True if the controller accepted the current commit, and its answer was lost.
    taken: bool,
    /// Early effects at the keeper, which sends them if the runner dies before the controller has them.
    noted: Vec<EarlyItem>,
    wake: Wake,
    stopped: bool,
    revoked: bool,
    /// The revision of the view on which the current operation was decided.
    decided_on: Revision,
    /// The `seq` of the record after the last accepted commit.
    committed: u64,
}

impl Driver {
    /// Creates a driver that starts at the unit's record.
    pub(super) fn new(agent: &Agent, unit: UnitName, last_number: u64) -> Self {
        let options = Options { unit, incarnation: agent.incarnation, engine: ENGINE.into(), last_number };
        Self {
            executor: Executor::new(options),
            begun: false,
            tasks: VecDeque::new(),
            finished: None,
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

    /// Returns true if an operation is in progress.
    pub(crate) fn is_in_flight(&self) -> bool {
        !self.tasks.is_empty() || self.finished.is_some() || self.executor.is_in_flight()
    }

    /// Returns whether the executor decides again when a frame touches its dependencies.
    pub(super) fn waits_for_frames(&self) -> bool {
        self.executor.waits_for_frames()
    }

    /// Returns the unit's name.
    pub(crate) fn name(&self) -> &UnitName {
        self.executor.unit()
    }

    /// Returns true if a hook ran whose end is not reported.
    pub(crate) fn has_run(&self) -> bool {
        self.finished.is_some()
    }

    /// Returns the uncommitted run that the runner's death loses.
    pub(crate) fn lost(&self) -> Option<TraceId> {
        self.traced.filter(|_| !self.taken)
    }

    /// Returns the times at which the clock alone wakes the unit.
    pub(crate) fn wake(&self) -> Wake {
        self.wake
    }

    /// Returns the time at which early effects are sent without a commit.
    pub(crate) fn early_due(&self) -> Option<Duration> {
        self.executor.early_due()
    }

    /// Takes the early effects that the keeper sends when the runner dies.
    pub(super) fn last_words(&mut self) -> Vec<EarlyItem> {
        std::mem::take(&mut self.noted)
    }

    /// Describes everything beside the view that decides the next step. `seq` is the unit's current one.
    pub(crate) fn reduced_state(&self, seq: Option<u64>, now: Now, view: &View) -> String {
        // The controller drops a commit that starts from another record, whatever its content.
        let fresh = |from: u64, what: String| if seq == Some(from) { what } else { "stale".to_owned() };
        let flight = match (&self.finished, self.tasks.front()) {
            (Some(FinishedHook { run, report }), _) => {
                let (run, report) = (&run.run, &**report);
                let RunReport { returned, effects, .. } = report;
                let what = format!("ran {:?} {:?} {returned:?} {effects:?}", run.event, run.seen);
                fresh(run.record.seq, what)
            }
            (None, Some(Task::Run { run, .. })) => {
                let run = &run.run;
                fresh(run.record.seq, format!("started {:?} {:?}", run.event, run.seen))
            }
            // An accepted commit is stale, and is still answered as accepted.
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

    /// Runs the next step of the current operation, or decides on an operation.
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
        if let Some(FinishedHook { report, .. }) = self.finished.take() {
            let jitter = jitter(world.random);
            let traced = self.traced;
            self.feed(ExecutorInput::Ended { report, jitter }, world)?;
            self.had_nothing_to_commit(traced, world);
            return Ok(true);
        }
        let workloads = world.agent.pods.of(self.name());
        // A driver that begins is told what the runner's first message had.
        if world.agent.pods.take_change(self.name()) || !(self.begun || workloads.is_empty()) {
            self.feed(ExecutorInput::Workloads(workloads), world)?;
            if self.is_in_flight() {
                return Ok(true);
            }
        }
        if world.agent.changed.remove(self.name()) {
            self.feed(ExecutorInput::DependenciesChanged, world)?;
            if self.is_in_flight() {
                return Ok(true);
            }
        }
        match self.tasks.pop_front() {
            Some(Task::Run { run, interrupt }) => return self.run(run, interrupt, world).map(|()| true),
            Some(Task::Commit(commit)) => return self.deliver(commit, world),
            None => {}
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.feed(ExecutorInput::Begin, world)?;
        } else if let Some(group) = self.awaits.clone() {
            if world.agent.groups.enter(&group, self.name()) {
                self.awaits = None;
                self.feed(ExecutorInput::Turn, world)?;
            }
        } else {
            self.pass_the_wait_for_an_answer(world);
            if self.is_due(world.now()) {
                self.feed(ExecutorInput::Woken, world)?;
            }
        }
        Ok(!self.tasks.is_empty())
    }

    /// Passes the wait before a lost commit is sent again, for this agent's short waits alone.
    fn pass_the_wait_for_an_answer(&self, world: &mut World<'_>) {
        if self.executor.is_committing() && world.agent.is_up() {
            world.agent.pass_short_waits(*world.clock, self.wake.after);
        }
    }

    /// Hands an input to the executor, and carries out its commands, except those with a step of their own.
    pub(crate) fn feed(&mut self, input: ExecutorInput, world: &mut World<'_>) -> Result<(), LabError> {
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

    /// Carries out a command, and returns the inputs that follow at once.
    fn carry_out(
        &mut self,
        command: ExecutorCommand,
        world: &mut World<'_>,
    ) -> Result<Vec<ExecutorInput>, LabError> {
        Ok(match command {
            ExecutorCommand::FetchCharm(digest) => vec![ExecutorInput::Charm(fetched(digest, world))],
            ExecutorCommand::TakeTurn(Turn { group, .. }) => match group {
                Some(group) if !world.agent.groups.enter(&group, self.name()) => {
                    self.awaits = Some(group);
                    Vec::new()
                }
                _ => vec![ExecutorInput::Turn],
            },
            ExecutorCommand::LeaveTurn => {
                self.awaits = None;
                world.agent.groups.leave(self.name());
                Vec::new()
            }
            ExecutorCommand::Run(run) => {
                let task = Task::Run { run, interrupt: Interrupt::NotRequested };
                match world.defect {
                    Some(Defect::NextBeforeAnswer) => self.tasks.push_front(task),
                    _ => self.tasks.push_back(task),
                }
                Vec::new()
            }
            ExecutorCommand::Interrupt => {
                if let Some(Task::Run { interrupt, .. }) = self.tasks.back_mut() {
                    *interrupt = Interrupt::Requested;
                }
                Vec::new()
            }
            ExecutorCommand::Commit(commit) => self.send(commit, world),
            ExecutorCommand::SendEarly(items) => {
                vec![ExecutorInput::EarlyAnswered(self.send_early(items, world)?)]
            }
            ExecutorCommand::Note(items) => {
                self.noted.extend(items);
                Vec::new()
            }
            ExecutorCommand::WakeAt(wake) => {
                self.wake = wake;
                Vec::new()
            }
            ExecutorCommand::Depend(change) => {
                world.agent.dependents.change(self.executor.unit(), change);
                Vec::new()
            }
            ExecutorCommand::Stop => {
                self.stopped = true;
                Vec::new()
            }
            ExecutorCommand::Revoked => {
                self.revoked = true;
                Vec::new()
            }
            // The charm is present at once, and no hook ends the laboratory's process.
            ExecutorCommand::ForgetCharm
            | ExecutorCommand::Started(_)
            | ExecutorCommand::Ended(_)
            | ExecutorCommand::Tried(_) => Vec::new(),
        })
    }

    fn send_early(&mut self, items: Vec<EarlyItem>, world: &mut World<'_>) -> Result<SendOutcome, LabError> {
        if !world.agent.is_up() {
            return Ok(SendOutcome::Unreachable);
        }
        let sent = items.last().map_or(0, |item| item.number);
        let (unit, incarnation) = (self.name().clone(), world.agent.incarnation);
        let command = RunnerCommand::Early { unit, incarnation, items };
        match world.agent.call(world.controller, *world.clock, command) {
            Ok(_) => {
                self.noted.retain(|item| item.number > sent);
                Ok(SendOutcome::Accepted)
            }
            // The unit is no longer this runner's.
            Err(LabError::Refused(refusal)) => Ok(SendOutcome::Refused(refusal)),
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
        Some(fault) => CharmAnswer::Unusable { message: fault.to_owned(), jitter: jitter(world.random) },
    }
}

fn jitter(random: &mut RandomNumbers) -> Jitter {
    Jitter::from_random(random.number())
}

impl Agent {
    /// Returns the time of this agent's units.
    pub(crate) fn time(&self, clock: Clock) -> Now {
        Now {
            wall: clock.now(),
            timer: self.timer_now(clock),
            steady: Duration::from_millis(clock.boot_ms()).saturating_add(self.ahead),
        }
    }

    /// Returns the time of units' timers, which no operator can set.
    fn timer_now(&self, clock: Clock) -> Timestamp {
        self.timeline.at(clock.boot_ms())
    }

    /// Returns the times at which a unit wakes, in milliseconds on the clock of leases.
    pub(crate) fn wakes_at_ms(&self, wake: Wake) -> impl Iterator<Item = u64> {
        let after = wake.after.map(|after| after.saturating_sub(self.ahead));
        let after = after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        wake.at.map(|at| self.timeline.boot_ms(at)).into_iter().chain(after)
    }

    /// Advances this agent's clock of short waits to a time. No other clock advances.
    pub(crate) fn pass_short_waits(&mut self, clock: Clock, until: Option<Duration>) {
        let boot = Duration::from_millis(clock.boot_ms());
        if let Some(until) = until {
            self.ahead = self.ahead.max(until.saturating_sub(boot));
        }
    }
}
