//! An agent without processes: its mirror of the model, the leases that its keeper holds, and its units' executors.

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
    executor::{Dependents, Touched},
};

use crate::{LabError, clock::Clock, controller::Controller, travel::travelled};

mod driver;
mod watch;

use driver::Groups;
pub(crate) use driver::{Driver, Step, World};

/// Whether an agent's process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    Running,
    /// Stopped by a signal: it does nothing, and keeps what it knows.
    Paused,
    Ended,
}

/// Whether anything gets through to an agent and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Up,
    Down,
}

/// What becomes of the claims of leadership that an agent's keeper makes. A hook's own claims get through whenever the
/// line is up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Claims {
    /// They are answered.
    #[default]
    Answered,
    /// The controller grants them, and the answers are lost: the frames alone tell who leads.
    Unanswered,
    /// The keeper is too slow to send any.
    Unsent,
}

/// What becomes of storage on an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Disk {
    /// It is made and deleted at once.
    Works,
    /// Nothing is made or deleted, and nothing said of it.
    Stuck,
    /// Neither can be done, for this reason.
    Broken(String),
}

/// What the controller answers to a claim.
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
    /// Whether the stream of frames flows; calls go another way.
    pub(crate) stream: Line,
    pub(crate) disk: Disk,
    pub(crate) claims: Claims,
    model: ModelUuid,
    /// None before the first frame.
    mirror: Option<View>,
    /// The state that the mirror was last made from.
    mirrored: Root,
    pub(crate) incarnation: Incarnation,
    /// What its units' timers run by, from its start.
    pub(crate) timeline: Timeline,
    leases: BTreeMap<UnitName, HeldLease>,
    renew_at_ms: u64,
    /// The view on which leadership was last claimed out of turn.
    claimed_at: Option<Revision>,
    pub(crate) drivers: BTreeMap<UnitName, Driver>,
    /// Which units a frame concerns.
    dependents: Dependents,
    /// Units whose decision may be another one by now.
    touched: BTreeSet<UnitName>,
    /// Whether units that a frame does not concern are looked at, too.
    pub(crate) doubts: bool,
    groups: Groups,
    /// How far the clock of short waits is ahead of the one of leases: see [`Agent::pass_short_waits`].
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
            touched: BTreeSet::new(),
            doubts: false,
            groups: Groups::default(),
            ahead: Duration::ZERO,
        }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::Runner { agent: self.name.clone(), model: self.model }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.process == Process::Running && self.line == Line::Up
    }

    /// What it knows of the model.
    pub(crate) fn view(&self) -> View {
        self.mirror.clone().unwrap_or_default()
    }

    /// Up to where it knows the model.
    pub(crate) fn revision(&self) -> Revision {
        self.mirror.as_ref().map_or(Revision::default(), |mirror| mirror.revision)
    }

    /// Whether a unit is in the model at all.
    pub(crate) fn exists(&self, controller: &Controller, unit: &UnitName) -> bool {
        controller.root().model(&self.model).is_some_and(|state| state.unit(unit).is_some())
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

    /// Ends keeper and runner at once, as a power cut does.
    pub(crate) fn stop(&mut self, controller: &mut Controller, clock: Clock) -> Result<(), LabError> {
        self.process = Process::Ended;
        self.forget();
        self.leases.clear();
        controller.worker(clock, WorkerCommand::AgentDisconnected(self.name.clone()))?;
        Ok(())
    }

    /// The runner dies and is started again; the keeper lives on, and sends what the runner had noted.
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
                // A refusal says that the unit is not this runner's any more: nobody is left to hear it.
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
        self.touched.clear();
        self.groups = Groups::default();
        self.mirror = None;
        self.claimed_at = None;
    }

    /// Revokes the runner before this one.
    fn attach(&mut self, controller: &mut Controller, clock: Clock) -> Result<(), LabError> {
        match self.call(controller, clock, RunnerCommand::Attach)? {
            RunnerAnswer::Attached { incarnation } => {
                self.incarnation = incarnation;
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
        let command = travelled("a runner's call", &command)?;
        match controller.submit(clock, &self.caller(), &Input::Runner(self.model, command))? {
            Output::Runner(answer) => Ok(answer),
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Receives all that happened as one frame, and checks that the mirror is the view afterwards. Answers whether
    /// there was anything in it.
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
            // Whoever goes by `looks_the_same` would not have sent this frame.
            let what = format!("unannounced: {:?} {:?}", frame.puts, frame.deletes);
            return Err(self.differs(root.revision(), &what));
        }
        let news = frame.from.is_none() || !(frame.puts.is_empty() && frame.deletes.is_empty());
        let before = mirror.clone();
        let touched = Touched::by(&before, &frame);
        mirror.apply(travelled("a frame", &frame)?)?;
        if mirror != newest {
            let (puts, deletes) = mirror.difference(&newest);
            return Err(self.differs(root.revision(), &format!("{puts:?} {deletes:?}")));
        }
        self.mirrored = root.clone();
        self.touch(&touched, &before, &mirror, clock)?;
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

    /// Makes and deletes storage, as far as the disk lets it. Answers whether anything was told.
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
                // What is refused is no longer as the mirror has it.
                Ok(_) | Err(LabError::Refused(_)) => told |= controller.root().revision() != before,
                Err(other) => return Err(other),
            }
        }
        Ok(told)
    }

    /// What one unit holds.
    pub(crate) fn lease(&self, unit: &UnitName) -> LeaseState {
        LeaseState { held: self.leases.get(unit).copied() }
    }

    /// Whether leadership was claimed on what it knows, for an application that nobody leads.
    pub(crate) fn has_claimed(&self) -> bool {
        self.mirror.as_ref().is_some_and(|mirror| self.claimed_at == Some(mirror.revision))
    }

    /// When leases are renewed next.
    pub(crate) fn renews_at_ms(&self) -> Option<u64> {
        self.is_up().then_some(self.renew_at_ms)
    }

    /// Claims and renews in turn, and at once for an application that nobody leads. Answers whether leadership
    /// was won.
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
            // U-41: a dying unit only keeps what it has.
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

    /// None: the claim was refused.
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
            // It is gone, or going: the next frame tells.
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
