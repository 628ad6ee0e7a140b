//! The laboratory: its participants and its observable state.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use periapt_host_api::{
    AgentName, Digest, ModelName, ModelUuid, Timestamp, UnitName, UserName,
    agent::Register,
    command::{Answer, Caller, ControllerCommand},
    status::{AgentStatus, FullStatus, StatusInfo, WorkloadStatus},
    view::View,
};
use periapt_model::{
    Input, ModelState, Output, RecordBody, Root, StatusContext, WorkerCommand, entity::Unit, full_status,
    shown_statuses,
};

use crate::{
    Action, Defect, LabCharm, LabError, RandomNumbers, Traced, agent::Agent, clock::Clock,
    controller::Controller, pods::PodScenario, trace::Trace,
};

mod clocks;
mod containers;
mod faults;
mod manual_unit;
mod moves;
mod operator;
mod reduction;
mod run;

pub use manual_unit::ManualUnit;
pub use reduction::ReductionCache;
pub use run::FaultRates;

/// The first agent of every laboratory.
const FIRST_AGENT: &str = "host";

/// The names of the model and its owner.
const MODEL: &str = "lab";
const OWNER: &str = "admin";

/// A model with its agents, on virtual time. A clone is independent from then on.
#[derive(Clone)]
pub struct Lab {
    clock: Clock,
    random: RandomNumbers,
    controller: Controller,
    model: ModelUuid,
    owner: UserName,
    agents: BTreeMap<AgentName, Agent>,
    charms: BTreeMap<Digest, LabCharm>,
    scripts: BTreeMap<(UnitName, String), Vec<Action>>,
    containers: PodScenario,
    held: BTreeSet<UnitName>,
    trace: Trace,
    fault_rates: FaultRates,
    defect: Option<Defect>,
}

impl fmt::Debug for Lab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lab")
            .field("now", &self.clock.now())
            .field("revision", &self.root().revision())
            .field("trace", &self.trace.last(20))
            .finish_non_exhaustive()
    }
}

impl Lab {
    /// Creates a controller with an empty model, and one agent.
    ///
    /// # Errors
    /// A defect: the model refuses its own set-up.
    pub fn new(seed: u64) -> Result<Self, LabError> {
        let mut random = RandomNumbers::new(seed);
        let mut controller = Controller::new(random.split());
        let clock = Clock::new();
        controller.worker(clock, WorkerCommand::Initialize { name: MODEL.to_owned() })?;
        let owner: UserName = OWNER.parse()?;
        let name: ModelName = MODEL.parse()?;
        let add = Input::Controller(ControllerCommand::add_model(name));
        let model = match controller.submit(clock, &Caller::User(owner.clone()), &add)? {
            Output::Answer(Answer::Model { uuid }) => uuid,
            other => return Err(LabError::OtherAnswer(format!("{other:?}"))),
        };
        let mut lab = Self {
            clock,
            random,
            controller,
            model,
            owner,
            agents: BTreeMap::new(),
            charms: BTreeMap::new(),
            scripts: BTreeMap::new(),
            containers: PodScenario::default(),
            held: BTreeSet::new(),
            trace: Trace::default(),
            fault_rates: FaultRates::default(),
            defect: None,
        };
        lab.add_agent(FIRST_AGENT)?;
        Ok(lab)
    }

    /// Adds a model and selects it. Applications of different models must have different names, because hooks are
    /// identified by their units.
    ///
    /// # Errors
    /// The refusal.
    pub fn add_model(&mut self, name: &str) -> Result<ModelUuid, LabError> {
        let name: ModelName = name.parse()?;
        match self.control(&ControllerCommand::add_model(name))? {
            Answer::Model { uuid } => {
                self.model = uuid;
                Ok(uuid)
            }
            other => Err(LabError::OtherAnswer(format!("{other:?}"))),
        }
    }

    /// Returns the selected model.
    pub fn model(&self) -> ModelUuid {
        self.model
    }

    /// Selects another model.
    pub fn switch(&mut self, model: ModelUuid) {
        self.model = model;
    }

    /// Starts one more agent, on a host of its own. It runs units of the selected model.
    ///
    /// # Errors
    /// An invalid name.
    pub fn add_agent(&mut self, name: &str) -> Result<(), LabError> {
        let name: AgentName = name.parse()?;
        let number = self.agents.len().saturating_add(1);
        let host = Register {
            addresses: vec![format!("10.0.0.{number}")],
            interfaces: Vec::new(),
            boot_id: format!("boot-{number}-1"),
            hostname: name.to_string(),
            availability_zone: String::new(),
            cores: 2,
            tags: Default::default(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: "laboratory".to_owned(),
            storage_limit: None,
            program: None,
            peer_port: None,
            firewall_problem: None,
            container_problem: None,
        };
        let mut agent = Agent::new(name.clone(), host, self.model);
        agent.start(&mut self.controller, self.clock)?;
        self.agents.insert(name, agent);
        Ok(())
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns all hooks that ran or were skipped, in the order of their starts.
    pub fn trace(&self) -> &[Traced] {
        self.trace.all()
    }

    /// Returns the hooks of one unit that were committed or skipped, as `db-relation-joined b/0`.
    pub fn hooks_of(&self, unit: &str) -> Vec<String> {
        let of_unit = self.trace().iter().filter(|traced| traced.unit.to_string() == unit);
        of_unit.filter(|traced| traced.is_concluded()).map(ToString::to_string).collect()
    }

    /// Returns the controller's whole state.
    pub fn root(&self) -> &Root {
        self.controller.root()
    }

    /// Returns the model's state.
    ///
    /// # Errors
    /// The model is gone.
    pub fn state(&self) -> Result<&ModelState, LabError> {
        let state = self.root().model(&self.model).ok_or_else(|| LabError::unknown("model", MODEL))?;
        Ok(state)
    }

    /// Returns a unit of the controller's state.
    ///
    /// # Errors
    /// There is no such unit.
    pub fn unit(&self, name: &str) -> Result<&Unit, LabError> {
        let unit: UnitName = name.parse()?;
        self.state()?.unit(&unit).map(AsRef::as_ref).ok_or_else(|| LabError::unknown("unit", name))
    }

    /// Returns a unit's workload and agent status, as `status` shows them.
    ///
    /// # Errors
    /// There is no such unit.
    pub fn statuses(
        &self,
        name: &str,
    ) -> Result<(StatusInfo<WorkloadStatus>, StatusInfo<AgentStatus>), LabError> {
        Ok(shown_statuses(self.root(), self.state()?, self.unit(name)?, self.clock.boot_ms()))
    }

    /// Returns the model's `status`.
    ///
    /// # Errors
    /// The model is gone.
    pub fn status(&self) -> Result<FullStatus, LabError> {
        let context = StatusContext {
            now: self.now(),
            lease_now_ms: self.clock.boot_ms(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: "laboratory".to_owned(),
            problems: Vec::new(),
        };
        full_status(self.root(), &self.model, &context).ok_or_else(|| LabError::unknown("model", MODEL))
    }

    /// Iterates over the records of an entity (`mysql/0`, `mysql`), the oldest first.
    pub fn records_of<'a>(&'a self, entity: &'a str) -> impl Iterator<Item = &'a RecordBody> {
        self.controller.records_of(entity)
    }

    /// Returns the view of an agent's runner.
    ///
    /// # Errors
    /// There is no such agent.
    pub fn mirror(&self, agent: &str) -> Result<View, LabError> {
        Ok(self.agent(agent)?.view())
    }

    /// Returns true if some running agent manages a unit.
    pub fn is_looked_after(&self, unit: &str) -> bool {
        let named = |name: &UnitName| name.to_string() == unit;
        self.agents.values().any(|agent| agent.drivers.keys().any(named))
    }

    fn agent(&self, name: &str) -> Result<&Agent, LabError> {
        let parsed: AgentName = name.parse()?;
        self.agents.get(&parsed).ok_or_else(|| LabError::unknown("agent", name))
    }

    fn agent_mut(&mut self, name: &str) -> Result<&mut Agent, LabError> {
        let parsed: AgentName = name.parse()?;
        self.agents.get_mut(&parsed).ok_or_else(|| LabError::unknown("agent", name))
    }
}
