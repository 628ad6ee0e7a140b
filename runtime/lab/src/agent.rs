//! An agent without processes: its mirror of the model, its keeper's leases, and its units' executors.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use periapt_hook::{HeldLease, LeaseState};
use periapt_host_api::{
    AgentName, Incarnation, LeaderTerm, ModelUuid, Refusal, Revision, Timestamp, UnitName,
    agent::{LeaseClaim, Register, RunnerAnswer, RunnerCommand, StorageReport},
    command::Caller,
    status::Life,
    timing::{LEASE_RENEWED_EVERY, LEASE_SECONDS},
    view::View,
};
use periapt_model::{Input, Output, Root, WorkerCommand, follow, view};
use periapt_uniter::{
    Timeline,
    executor::{ChangedDependencies, Dependents},
};

use crate::{
    LabError,
    clock::Clock,
    controller::Controller,
    pods::{PodWorld, Pods},
    transport::transported,
};

mod driver;
mod watch;

use driver::Groups;
pub(crate) use driver::{Driver, Step, World};

/// The state of an agent's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    Running,
    /// Stopped by a signal: it does nothing, and keeps its memory.
    Paused,
    Ended,
}

/// The state of the connection between an agent and the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Up,
    Down,
}

/// The treatment of leadership claims by an agent's keeper. A hook's own claims get through whenever the connection is
/// up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Claims {
    /// The controller answers them.
    #[default]
    Answered,
    /// The controller grants them, and the answers are lost: only frames show the leader.
    Unanswered,
    /// The keeper is too slow to send them.
    Unsent,
}

/// The state of an agent's disk for storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disk {
    /// Storage is made and deleted at once.
    Works,
    /// Storage is neither made nor deleted, and the agent reports nothing.
    Stuck,
    /// Storage can be neither made nor deleted, for this reason.
    Broken(String),
}

/// The controller's answer to a claim.
#[derive(Debug, Clone, Copy)]
enum LeaseAnswer {
    Granted { term: LeaderTerm, lasts_ms: u64 },
    Held,
}

/// One agent.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) name: AgentName,
    pub(crate) host: Register,
    pub(crate) process: Process,
    pub(crate) line: Line,
    /// The state of the stream of frames; calls use another connection.
    pub(crate) stream: Line,
    pub(crate) disk: Disk,
    pub(crate) claims: Claims,
    model: ModelUuid,
    /// None before the first frame.
    mirror: Option<View>,
    /// The state that the mirror was last made from.
    mirrored: Root,
    pub(crate) incarnation: Incarnation,
    /// The timeline of its units' timers, from the agent's start.
    pub(crate) timeline: Timeline,
    leases: BTreeMap<UnitName, HeldLease>,
    renew_at_ms: u64,
    /// The revision of the view at the last urgent claim.
    claimed_at: Option<Revision>,
    pub(crate) drivers: BTreeMap<UnitName, Driver>,
    /// The index of units by what their decisions depend on.
    dependents: Dependents,
    /// Units whose decision may have changed.
    changed: BTreeSet<UnitName>,
    /// True if units that a frame does not concern are checked, too.
    pub(crate) doubts: bool,
    groups: Groups,
    /// The pods on its host.
    pub(crate) pods: Pods,
    /// The lead of the clock of short waits over the clock of leases: see [`Agent::pass_short_waits`].
    ahead: Duration,
}

impl Agent {
    pub(crate) fn new(name: AgentName, host: Register, model: ModelUuid) -> Self {
        Self {
            name,
            host,
            process: Process::Ended,
            line: Line::Up,
            stream: Line::Up,
            disk: Disk::Works,
            claims: Claims::Answered,
            model,
            mirror: None,
            mirrored: Root::default(),
            incarnation: Incarnation::default(),
            timeline: Timeline::new(Timestamp::UNIX_EPOCH, 0),
            leases: BTreeMap::new(),
            renew_at_ms: 0,
            claimed_at: None,
            drivers: BTreeMap::new(),
            dependents: Dependents::default(),
            changed: BTreeSet::new(),
            doubts: false,
            groups: Groups::default(),
            pods: Pods::default(),
            ahead: Duration::ZERO,
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::Runner { agent: self.name.clone(), model: self.model }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.process == Process::Running && self.line == Line::Up
    }

    /// Returns its view of the model.
    pub(crate) fn view(&self) -> View {
        self.mirror.clone().unwrap_or_default()
    }

    /// Returns the revision of its view.
    pub(crate) fn revision(&self) -> Revision {
        self.mirror.as_ref().map_or(Revision::default(), |mirror| mirror.revision)
    }

    /// Returns true if the agent has a unit: the unit is in the model, and did not go to another agent.
    pub(crate) fn has(&self, controller: &Controller, unit: &UnitName) -> bool {
        let state = controller.root().model(&self.model);
        state.is_some_and(|state| state.unit(unit).and_then(|unit| state.agent_of(unit)) == Some(&self.name))
    }

    /// Starts keeper and runner.
    pub(crate) fn start(&mut self, controller: &mut Controller, clock: Clock) -> Result<(), LabError> {
        let register = Input::Register(self.name.clone(), self.host.clone());
        controller.submit(clock, &Caller::Agent(self.name.clone()), &register)?;
        controller.worker(clock, WorkerCommand::AgentConnected(self.name.clone()))?;
        self.process = Process::Running;
        self.timeline = Timeline::new(clock.now(), clock.boot_ms());
        self.renew_at_ms = clock.boot_ms();
        self.attach(controller, clock)
    }

    /// Ends keeper and runner at once. The host's pods go on.
    pub(crate) fn stop(&mut self, controller: &mut Controller, clock: Clock) -> Result<(), LabError> {
        self.process = Process::Ended;
        self.forget();
        self.pods.keeper_ends();
        self.leases.clear();
        controller.worker(clock, WorkerCommand::AgentDisconnected(self.name.clone()))?;
        Ok(())
    }

    /// Ends the runner and starts it again. The keeper lives on, and sends the early effects that the runner had
    /// noted.
    pub(crate) fn restart_runner(
        &mut self,
        controller: &mut Controller,
        clock: Clock,
    ) -> Result<(), LabError> {
        let last_words = |(unit, driver): (&UnitName, &mut Driver)| (unit.clone(), driver.last_words());
        let noted: Vec<_> = self.drivers.iter_mut().map(last_words).collect();
        for (unit, items) in noted.into_iter().filter(|(_, items)| !items.is_empty()) {
            let command = RunnerCommand::Early { unit, incarnation: self.incarnation, items };
            match self.call(controller, clock, command) {
                // A refusal means that the unit is no longer this runner's, so nobody needs the answer.
                Ok(_) | Err(LabError::Refused(_)) => {}
                Err(other) => return Err(other),
            }
        }
        self.forget();
        self.attach(controller, clock)
    }

    fn forget(&mut self) {
        self.drivers.clear();
        self.dependents = Dependents::default();
        self.changed.clear();
        self.groups = Groups::default();
        self.mirror = None;
        self.claimed_at = None;
    }

    /// Attaches the runner, which revokes the one before it.
    fn attach(&mut self, controller: &mut Controller, clock: Clock) -> Result<(), LabError> {
        match self.call(controller, clock, RunnerCommand::Attach)? {
            RunnerAnswer::Attached { incarnation } => {
                self.incarnation = incarnation;
                self.pods.runner_begins();
                Ok(())
            }
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    pub(crate) fn call(
        &self,
        controller: &mut Controller,
        clock: Clock,
        command: RunnerCommand,
    ) -> Result<RunnerAnswer, LabError> {
        let command = transported("a runner's call", &command)?;
        match controller.submit(clock, &self.caller(), &Input::Runner(self.model, command))? {
            Output::Runner(answer) => Ok(answer),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Receives all changes as one frame, and checks that the mirror then equals the view. Returns true if the frame
    /// was not empty.
    pub(crate) fn catch_up(&mut self, controller: &Controller, clock: Clock) -> Result<bool, LabError> {
        let root = controller.root();
        let known = self.mirror.as_ref().is_some_and(|mirror| mirror.revision == root.revision());
        if !self.is_up() || self.stream == Line::Down || known {
            return Ok(false);
        }
        let caller = self.caller();
        let newest = view(root, &caller);
        let store = controller.store_id();
        let (mut mirror, frame) = match self.mirror.take() {
            Some(mirror) => {
                let followed = follow(&self.mirrored, &mirror, root, &caller);
                let frame = mirror.frame_to(&followed, store);
                (mirror, frame)
            }
            None => (View::default(), newest.full_frame(store)),
        };
        let quiet = self.mirrored.looks_the_same(root, &caller, &self.model);
        if frame.from.is_some() && quiet && !(frame.puts.is_empty() && frame.deletes.is_empty()) {
            // A watcher that relies on `looks_the_same` would have missed this frame.
            let what = format!("unannounced: {:?} {:?}", frame.puts, frame.deletes);
            return Err(self.differs(root.revision(), &what));
        }
        let news = frame.from.is_none() || !(frame.puts.is_empty() && frame.deletes.is_empty());
        let before = mirror.clone();
        let changed = ChangedDependencies::by(&before, &frame);
        mirror.apply(transported("a frame", &frame)?)?;
        if mirror != newest {
            let (puts, deletes) = mirror.difference(&newest);
            return Err(self.differs(root.revision(), &format!("{puts:?} {deletes:?}")));
        }
        self.mirrored = root.clone();
        self.touch(&changed, &before, &mirror, clock)?;
        self.pods.observe(&mirror);
        for (name, unit) in &mirror.units {
            if !self.drivers.contains_key(name) {
                let driver = Driver::new(self, name.clone(), unit.early_number);
                self.drivers.insert(name.clone(), driver);
            }
        }
        self.mirror = Some(mirror);
        Ok(news)
    }

    fn differs(&self, revision: Revision, what: &str) -> LabError {
        let what = what.chars().take(2_000).collect();
        LabError::MirrorDiffers { agent: self.name.clone(), revision, what }
    }

    /// Makes and deletes storage as far as the disk allows. Returns true if a report changed the model.
    pub(crate) fn keep_storage(
        &mut self,
        controller: &mut Controller,
        clock: Clock,
    ) -> Result<bool, LabError> {
        let Some(mirror) = self.mirror.clone().filter(|_| self.is_up()) else { return Ok(false) };
        let mut told = false;
        for found in mirror.storages.values() {
            let done = match (found.provisioned, &found.attachment) {
                (false, Some(_)) => StorageReport::Provisioned,
                (true, None) if found.life != Life::Alive => StorageReport::Deleted,
                _ => continue,
            };
            let report = match &self.disk {
                Disk::Works => done,
                Disk::Stuck => continue,
                Disk::Broken(message) => StorageReport::Failed { message: message.clone() },
            };
            let before = controller.root().revision();
            let (storage, incarnation) = (found.id.clone(), self.incarnation);
            match self.call(controller, clock, RunnerCommand::Storage { storage, incarnation, report }) {
                // A refused report is about storage that has changed since the mirror's revision.
                Ok(_) | Err(LabError::Refused(_)) => told |= controller.root().revision() != before,
                Err(other) => return Err(other),
            }
        }
        Ok(told)
    }

    /// Lets the pods live until now, starts those that are wanted, and carries the keeper's words about them to the
    /// runner. Returns true if there were any.
    pub(crate) fn keep_pods(&mut self, world: &mut PodWorld<'_>) -> Result<bool, LabError> {
        self.pods.run(world)?;
        let is_running = self.process == Process::Running;
        let Self { pods, mirror: Some(mirror), .. } = self else { return Ok(false) };
        if !is_running {
            return Ok(false);
        }
        if world.scenario.has_cores {
            pods.start_all(mirror, world);
        }
        pods.tell(mirror)
    }

    /// Returns a unit's lease.
    pub(crate) fn lease(&self, unit: &UnitName) -> LeaseState {
        LeaseState { held: self.leases.get(unit).copied() }
    }

    /// Returns true if the keeper has claimed leadership at its view's revision.
    pub(crate) fn has_claimed(&self) -> bool {
        self.mirror.as_ref().is_some_and(|mirror| self.claimed_at == Some(mirror.revision))
    }

    /// Returns the time of the next renewal, on the clock of leases.
    pub(crate) fn renews_at_ms(&self) -> Option<u64> {
        self.is_up().then_some(self.renew_at_ms)
    }

    /// Claims and renews when due, and at once if an application has no leader. Returns true if the model changed.
    pub(crate) fn keep_leases(
        &mut self,
        controller: &mut Controller,
        clock: Clock,
    ) -> Result<bool, LabError> {
        let sends = self.is_up() && self.claims != Claims::Unsent;
        let Some(mirror) = self.mirror.clone().filter(|_| sends) else { return Ok(false) };
        let due = self.renew_at_ms <= clock.boot_ms();
        let leaderless = mirror.applications.values().any(|application| application.leader.is_none());
        let urgent = leaderless && self.claimed_at != Some(mirror.revision);
        if !due && !urgent {
            return Ok(false);
        }
        if due {
            self.renew_at_ms = clock.boot_ms().saturating_add(LEASE_RENEWED_EVERY.as_millis() as u64);
        }
        self.claimed_at = Some(mirror.revision);
        let before = controller.root().revision();
        for unit in mirror.units.values() {
            let application = mirror.applications.get(unit.name.application());
            let leads = application
                .and_then(|application| application.leader.as_ref())
                .is_some_and(|leader| leader.unit == unit.name);
            // A dying unit only keeps its leadership (U-41).
            if unit.life == Life::Alive || (unit.life == Life::Dying && leads) {
                let answer = self.ask_to_lead(controller, clock, &unit.name)?;
                if self.claims == Claims::Answered {
                    self.note(clock, &unit.name, answer);
                }
            }
        }
        Ok(controller.root().revision() != before)
    }

    /// Claims or renews one unit's leadership.
    pub(crate) fn claim(
        &mut self,
        controller: &mut Controller,
        clock: Clock,
        unit: &UnitName,
    ) -> Result<(), LabError> {
        let answer = self.ask_to_lead(controller, clock, unit)?;
        self.note(clock, unit, answer);
        Ok(())
    }

    /// Sends a claim. None if the controller refused it.
    fn ask_to_lead(
        &self,
        controller: &mut Controller,
        clock: Clock,
        unit: &UnitName,
    ) -> Result<Option<LeaseAnswer>, LabError> {
        let application = unit.application().clone();
        let claim = LeaseClaim { unit: unit.clone(), application, seconds: LEASE_SECONDS };
        match self.call(controller, clock, RunnerCommand::Claim(claim)) {
            Ok(RunnerAnswer::Granted { term, seconds }) => {
                Ok(Some(LeaseAnswer::Granted { term, lasts_ms: u64::from(seconds).saturating_mul(1_000) }))
            }
            Ok(RunnerAnswer::Held { .. }) => Ok(Some(LeaseAnswer::Held)),
            Ok(other) => Err(LabError::OtherAnswer(format!("{other:?}"))),
            // The unit is dead or dying: the next frame shows it.
            Err(LabError::Refused(Refusal { .. })) => Ok(None),
            Err(other) => Err(other),
        }
    }

    fn note(&mut self, clock: Clock, unit: &UnitName, answer: Option<LeaseAnswer>) {
        match answer {
            Some(LeaseAnswer::Granted { term, lasts_ms }) => {
                let valid_until_ms = clock.boot_ms().saturating_add(lasts_ms);
                self.leases.insert(unit.clone(), HeldLease { term, valid_until_ms });
            }
            Some(LeaseAnswer::Held) => {
                self.leases.remove(unit);
            }
            None => {}
        }
    }
}
