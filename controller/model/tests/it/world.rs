//! A controller with a model, agents that answer for their units, and a clock that the test moves.

use std::collections::BTreeMap;

use periapt_host_api::{
    AgentName, ApplicationName, Digest, Incarnation, MachineId, ModelUuid, Refusal, RelationId, Revision,
    Timestamp, UnitName, UserName,
    access::ControllerAccess,
    agent::{Admission, Register, RunnerAnswer, RunnerCommand},
    charm::{CharmFiles, CharmMeta},
    command::{Answer, Caller, Command, ControllerCommand, Deploy, EndpointSelector, Placement},
    commit::EarlyEffect,
    refresh::RefreshPlan,
    size,
    status::{AgentStatus, FullStatus},
    view::View,
};
use periapt_model::{
    Changes, Entity, EntityKey, Environment, Evaluated, IdentityCommand, Input, ModelState, Output,
    RecordAppend, RefreshRequest, RequestedCommand, Root, StatusContext, UploadedCharm, WorkSchedule,
    WorkerCommand, due_work,
    entity::{Application, Bag, MetaReader, Registration, Relation, Unit},
    evaluate, evaluate_once, full_status, plan_refresh, view,
};

use crate::invariants;

mod uniter;

/// A charm with a peer relation, a required database, and options of all types.
pub(crate) const APP: &str = "
name: app
summary: s
description: d
requires:
  db: {interface: sql}
  logs: {interface: syslog}
provides:
  web: {interface: http, limit: 1}
peers:
  ring: {interface: ring}
";
const APP_CONFIG: &str = "
options:
  title: {type: string, default: hello, description: d}
  note: {type: string, description: d}
  port: {type: int, default: 80, description: d}
  ratio: {type: float, description: d}
  debug: {type: boolean, default: false, description: d}
";

/// The charm of the database that `app` requires.
pub(crate) const DB: &str = "
name: db
summary: s
description: d
provides:
  server: {interface: sql}
";

/// A subordinate charm that relates to every application.
pub(crate) const LOGGING: &str = "
name: logging
summary: s
description: d
subordinate: true
provides:
  sink: {interface: syslog, scope: container}
requires:
  info: {interface: juju-info, scope: container}
";

pub(crate) struct World {
    pub(crate) root: Root,
    pub(crate) model: ModelUuid,
    pub(crate) now: Timestamp,
    pub(crate) lease_now_ms: u64,
    /// The entities that a store would have.
    pub(crate) stored: BTreeMap<EntityKey, Entity>,
    pub(crate) records: Vec<RecordAppend>,
    incarnations: BTreeMap<(ModelUuid, AgentName), Incarnation>,
    asked: u64,
    /// True if the invariants are checked after each command. The check costs as much as the model is large.
    pub(crate) checked: bool,
}

impl World {
    /// Returns a controller with a model and one agent.
    pub(crate) fn new() -> Self {
        let mut world = Self::bare("home", 0);
        world.model = world.add_model("m");
        world.agent("a1");
        world
    }

    /// Returns a controller without models and agents. The ids that it draws begin at a number.
    pub(crate) fn bare(name: &str, first: u64) -> Self {
        let mut world = Self {
            root: Root::default(),
            model: ModelUuid(Default::default()),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            lease_now_ms: 1_000_000,
            stored: BTreeMap::new(),
            records: Vec::new(),
            incarnations: BTreeMap::new(),
            asked: first,
            checked: true,
        };
        world.work(WorkerCommand::Initialize { name: name.into() });
        world
    }

    fn environment(&mut self) -> Environment {
        self.asked += 1;
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.asked.to_le_bytes());
        Environment { now: self.now, lease_now_ms: self.lease_now_ms, seed }
    }

    /// Sends a request, and checks the invariants.
    pub(crate) fn ask(&mut self, caller: &Caller, input: &Input) -> Result<Output, Refusal> {
        let env = self.environment();
        let (changes, output) = evaluate(&self.root, caller, input, &env)?;
        self.take_checked([changes]);
        Ok(output)
    }

    /// Sends a command of a request with an id, as the writer evaluates it.
    pub(crate) fn ask_once(
        &mut self,
        caller: &Caller,
        input: &Input,
        command: &RequestedCommand,
    ) -> Result<Evaluated, Refusal> {
        let env = self.environment();
        let evaluated = evaluate_once(&self.root, caller, input, Some(command), &env)?;
        if let Evaluated::New { changes, kept, .. } = &evaluated {
            self.take_checked([changes.clone(), kept.clone()]);
        }
        Ok(evaluated)
    }

    fn take_checked<const PARTS: usize>(&mut self, parts: [Changes; PARTS]) {
        let before = self.root.clone();
        for changes in parts {
            self.take(changes);
        }
        if self.checked {
            invariants::check(&before, self);
        }
    }

    fn take(&mut self, changes: Changes) {
        assert!(changes.puts.len() <= 100, "too many entities at once");
        let bytes: usize =
            changes.puts.iter().map(|(key, entity)| size::of_json(key) + size::of_json(entity)).sum();
        assert!(bytes <= 1 << 20, "too many bytes at once: {bytes}");
        let revision = Revision(self.root.revision().0 + u64::from(!changes.stores_nothing()));
        self.root = self.root.apply(&changes, revision);
        for (key, entity) in changes.puts {
            match entity {
                Some(entity) => self.stored.insert(key, entity),
                None => self.stored.remove(&key),
            };
        }
        self.records.extend(changes.records);
    }

    pub(crate) fn user(&self) -> Caller {
        Caller::User("admin".parse().unwrap())
    }

    /// Adds a user who may log in.
    pub(crate) fn add_user(&mut self, name: &str) -> Caller {
        let name: UserName = name.parse().unwrap();
        let registration = Registration { token: Digest::of(name.as_str().as_bytes()), expires_at: self.now };
        let add = IdentityCommand::AddUser { name: name.clone(), display_name: String::new(), registration };
        self.ask(&self.user(), &Input::Identity(add)).unwrap();
        Caller::User(name)
    }

    /// Adds a superuser.
    pub(crate) fn superuser(&mut self, name: &str) -> Caller {
        let caller = self.add_user(name);
        let (user, access) = (name.parse().unwrap(), ControllerAccess::Superuser);
        self.control(ControllerCommand::GrantController { user, access }).unwrap();
        caller
    }

    pub(crate) fn runner(&self, agent: &str) -> Caller {
        Caller::Runner { agent: agent.parse().unwrap(), model: self.model }
    }

    /// Sends an operator's command.
    pub(crate) fn run(&mut self, command: Command) -> Result<Answer, Refusal> {
        match self.ask(&self.user(), &Input::Model(self.model, command))? {
            Output::Answer(answer) => Ok(answer),
            other => panic!("{other:?}"),
        }
    }

    /// Returns the plan of a refresh.
    pub(crate) fn plan(&self, request: &RefreshRequest) -> Result<RefreshPlan, Refusal> {
        self.plan_as(&self.user(), request)
    }

    pub(crate) fn plan_as(&self, caller: &Caller, request: &RefreshRequest) -> Result<RefreshPlan, Refusal> {
        let env = Environment { now: self.now, lease_now_ms: self.lease_now_ms, seed: [0; 16] };
        plan_refresh(&self.root, caller, &env, self.model, request)
    }

    pub(crate) fn control(&mut self, command: ControllerCommand) -> Result<Answer, Refusal> {
        match self.ask(&self.user(), &Input::Controller(command))? {
            Output::Answer(answer) => Ok(answer),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn add_model(&mut self, name: &str) -> ModelUuid {
        match self.control(ControllerCommand::add_model(name.parse().unwrap())).unwrap() {
            Answer::Model { uuid } => uuid,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn work(&mut self, command: WorkerCommand) {
        self.try_work(command).unwrap();
    }

    pub(crate) fn try_work(&mut self, command: WorkerCommand) -> Result<(), Refusal> {
        self.ask(&Caller::Worker, &Input::Worker(command)).map(drop)
    }

    /// Runs all due work. Each step must change something.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            let (commands, _) = due_work(&self.root, self.now, self.lease_now_ms, &WorkSchedule::default());
            if commands.is_empty() {
                if self.checked {
                    invariants::copied(&self.root);
                }
                return;
            }
            for command in commands {
                // A model may be removed before its other steps have their turn.
                let _ = self.ask(&Caller::Worker, &Input::Worker(command));
            }
        }
        panic!("the controller's work never ends");
    }

    pub(crate) fn advance(&mut self, seconds: u32) {
        self.now += jiff::SignedDuration::from_secs(i64::from(seconds));
        self.lease_now_ms += u64::from(seconds) * 1000;
    }

    /// Registers an agent and attaches its runner.
    pub(crate) fn agent(&mut self, name: &str) {
        let agent: AgentName = name.parse().unwrap();
        let number = self.root.agents().count() + 1;
        let register = Register {
            addresses: vec![format!("10.0.0.{number}")],
            interfaces: Vec::new(),
            boot_id: format!("boot-{name}"),
            hostname: format!("host-{name}"),
            availability_zone: String::new(),
            cores: 0,
            tags: Default::default(),
            version: "1".into(),
            engine: "e".into(),
            storage_limit: None,
            program: None,
            peer_port: None,
            firewall_problem: None,
            container_problem: None,
        };
        self.register(&agent, register);
        self.attach(name);
    }

    /// Registers an agent, or registers it again.
    pub(crate) fn register(&mut self, agent: &AgentName, register: Register) {
        self.ask(&Caller::Agent(agent.clone()), &Input::Register(agent.clone(), register)).unwrap();
    }

    /// Admits an agent, which joins with a key that is named by a text.
    pub(crate) fn join(&mut self, agent: &str, key: &str) {
        let (agent, token): (AgentName, _) = (agent.parse().unwrap(), Digest::of(agent.as_bytes()));
        let admission = Admission { agent: agent.clone(), token, valid_for: 60, again: true };
        self.control(ControllerCommand::AdmitAgent(admission)).unwrap();
        let input = Input::Join { agent: agent.clone(), key: Digest::of(key.as_bytes()), token };
        self.ask(&Caller::Agent(agent), &input).unwrap();
    }

    pub(crate) fn attach(&mut self, agent: &str) -> Incarnation {
        match self.runner_call(agent, RunnerCommand::Attach).unwrap() {
            RunnerAnswer::Attached { incarnation } => {
                self.incarnations.insert((self.model, agent.parse().unwrap()), incarnation);
                incarnation
            }
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn runner_call(&mut self, agent: &str, call: RunnerCommand) -> Result<RunnerAnswer, Refusal> {
        match self.ask(&self.runner(agent), &Input::Runner(self.model, call))? {
            Output::Runner(answer) => Ok(answer),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn upload(&mut self, metadata: &str) -> Digest {
        self.upload_with(metadata, None)
    }

    pub(crate) fn upload_with(&mut self, metadata: &str, config: Option<&str>) -> Digest {
        self.upload_files(&CharmFiles {
            metadata: Some(metadata.into()),
            config: config.map(Into::into),
            ..CharmFiles::default()
        })
    }

    pub(crate) fn upload_files(&mut self, files: &CharmFiles) -> Digest {
        let charm = uploaded(files);
        let digest = charm.digest;
        self.ask(&self.user(), &Input::UploadCharm(charm)).unwrap();
        digest
    }

    pub(crate) fn upload_app(&mut self) -> Digest {
        self.upload_with(APP, Some(APP_CONFIG))
    }

    /// Deploys an application under a name, and runs the unit assigner.
    pub(crate) fn deploy(&mut self, charm: Digest, name: &str, units: u32) -> Vec<UnitName> {
        let answer = self.run(deploy_command(charm, name, units)).unwrap();
        self.settle();
        match answer {
            Answer::Application { units, .. } => units,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn deploy_app(&mut self, name: &str, units: u32) -> Vec<UnitName> {
        let charm = self.upload_app();
        self.deploy(charm, name, units)
    }

    pub(crate) fn deploy_db(&mut self, name: &str, units: u32) -> Vec<UnitName> {
        let charm = self.upload(DB);
        self.deploy(charm, name, units)
    }

    pub(crate) fn deploy_logging(&mut self, name: &str) {
        let charm = self.upload(LOGGING);
        self.deploy(charm, name, 0);
    }

    /// Relates two applications, `NAME` or `NAME:ENDPOINT`.
    pub(crate) fn integrate(&mut self, first: &str, second: &str) -> Result<RelationId, Refusal> {
        self.integrate_via(first, second, &[])
    }

    /// Relates two applications with traffic from these subnets.
    pub(crate) fn integrate_via(
        &mut self,
        first: &str,
        second: &str,
        via: &[&str],
    ) -> Result<RelationId, Refusal> {
        let via = via.iter().map(|subnet| subnet.parse().unwrap()).collect();
        match self.run(Command::Integrate { first: selector(first), second: selector(second), via })? {
            Answer::Relation { id, .. } => Ok(id),
            other => panic!("{other:?}"),
        }
    }

    /// Acts in another model.
    pub(crate) fn within<T>(&mut self, model: ModelUuid, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.model, model);
        let done = act(self);
        self.model = before;
        done
    }

    /// Adds a model, with runners on existing agents.
    pub(crate) fn other_model(&mut self, name: &str, agents: &[&str]) -> ModelUuid {
        let model = self.add_model(name);
        self.within(model, |world| {
            for agent in agents {
                world.attach(agent);
            }
        });
        model
    }

    /// Offers endpoints of an application under its own name.
    pub(crate) fn offer(&mut self, application: &str, endpoints: &[&str]) -> Result<Answer, Refusal> {
        self.run(Command::Offer {
            application: application.parse().unwrap(),
            endpoints: endpoints.iter().map(|name| name.parse().unwrap()).collect(),
            name: None,
            description: None,
        })
    }

    pub(crate) fn consume(&mut self, offer: &str, name: Option<&str>) -> Result<Answer, Refusal> {
        let application = name.map(|name| name.parse().unwrap());
        self.run(Command::Consume { offer: offer.parse().unwrap(), application })
    }

    pub(crate) fn state(&self) -> &ModelState {
        self.root.model(&self.model).unwrap()
    }

    pub(crate) fn unit(&self, name: &str) -> &Unit {
        self.state().unit(&unit(name)).unwrap_or_else(|| panic!("{name} is gone"))
    }

    pub(crate) fn has_unit(&self, name: &str) -> bool {
        self.state().unit(&unit(name)).is_some()
    }

    pub(crate) fn application(&self, name: &str) -> &Application {
        self.state().application(&name.parse().unwrap()).unwrap_or_else(|| panic!("{name} is gone"))
    }

    pub(crate) fn has_application(&self, name: &str) -> bool {
        self.state().application(&name.parse::<ApplicationName>().unwrap()).is_some()
    }

    pub(crate) fn relation(&self, id: RelationId) -> &Relation {
        self.state().relation(&id).unwrap_or_else(|| panic!("relation {id} is gone"))
    }

    pub(crate) fn bag(&self, relation: RelationId, of: &str) -> Option<&Bag> {
        use periapt_host_api::relation::{BagKey, BagOwner};
        let owner = match of.contains('/') {
            true => BagOwner::Unit(unit(of)),
            false => BagOwner::Application(of.parse().unwrap()),
        };
        self.state().bag(&BagKey { relation, owner }).map(AsRef::as_ref)
    }

    pub(crate) fn agent_of(&self, name: &str) -> String {
        self.state().agent_of(self.unit(name)).expect("the unit has no machine").to_string()
    }

    pub(crate) fn view(&self, agent: &str) -> View {
        view(&self.root, &self.runner(agent))
    }

    pub(crate) fn status(&self) -> FullStatus {
        let context = StatusContext {
            now: self.now,
            lease_now_ms: self.lease_now_ms,
            version: "1".into(),
            engine: "e".into(),
            problems: Vec::new(),
        };
        full_status(&self.root, &self.model, &context).unwrap()
    }
}

/// Returns the upload of a charm with these files, as the controller makes it.
pub(crate) fn uploaded(files: &CharmFiles) -> UploadedCharm {
    let digest = Digest::of(format!("{files:?}").as_bytes());
    let component = Digest::of(format!("{:?}", files.metadata).as_bytes());
    let meta = CharmMeta::parse(files).unwrap();
    UploadedCharm { digest, component, meta, size: 1, reader: MetaReader::NEWEST }
}

pub(crate) fn deploy_command(charm: Digest, name: &str, units: u32) -> Command {
    Command::Deploy(Deploy { application: Some(name.parse().unwrap()), ..Deploy::of(charm, units) })
}

pub(crate) fn agent_status(status: AgentStatus, message: &str) -> EarlyEffect {
    EarlyEffect::AgentStatus { status, message: message.into(), data: serde_json::Map::new() }
}

pub(crate) fn selector(text: &str) -> EndpointSelector {
    let (application, endpoint) = match text.split_once(':') {
        Some((application, endpoint)) => (application, Some(endpoint.parse().unwrap())),
        None => (text, None),
    };
    EndpointSelector { application: application.parse().unwrap(), endpoint }
}

pub(crate) fn unit(name: &str) -> UnitName {
    name.parse().unwrap()
}

pub(crate) fn on_machine(id: u32) -> Vec<Placement> {
    vec![Placement::Machine(MachineId(id))]
}
