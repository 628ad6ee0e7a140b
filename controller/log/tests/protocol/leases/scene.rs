//! A model with an application of two units on two hosts, made by the controller's own commands.

use std::hash::{Hash, Hasher};

use periapt_host_api::{
    AgentName, ApplicationName, Digest, ModelUuid, Revision, StoreId, Timestamp, UnitName,
    agent::{LeaseClaim, Register, RunnerAnswer, RunnerCommand},
    charm::{CharmFiles, CharmMeta},
    command::{Answer, Caller, Command, ControllerCommand, Deploy, Placement},
    timing::LEASE_SECONDS,
};
use periapt_model::{
    Changes, Environment, Input, Output, Root, UploadedCharm, WorkSchedule, WorkerCommand, due_work,
    entity::MetaReader, evaluate,
};

use super::Granted;

/// The identity of the model's log.
pub(super) const LOG: StoreId = StoreId(uuid::Uuid::from_u128(1));

const APPLICATION: &str = "app";
const AGENTS: [&str; 2] = ["one", "two"];

/// A state of a controller, as far as leases are concerned: its application's leader with its term, and the
/// lease. Two states that agree in these, and are made of the same entries, answer every claim alike.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) root: Root,
    model: ModelUuid,
}

impl Known {
    fn parts(&self) -> (Option<String>, Option<u64>) {
        let application = ApplicationName::new(APPLICATION).unwrap();
        let state = self.root.model(&self.model).unwrap().application(&application).unwrap();
        let leader = state.leader.as_ref().map(|leader| format!("{leader:?}"));
        (leader, self.root.lease(&self.model, &application))
    }

    /// Returns the state with another root.
    pub(super) fn with(&self, root: Root) -> Self {
        Self { root, model: self.model }
    }
}

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Eq for Known {}

impl Hash for Known {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

/// The beginning of all states.
pub(super) struct Scene {
    root: Root,
    model: ModelUuid,
    asked: u64,
}

/// Returns the environment of a command at a time, by the clock of a controller. The clocks differ by far,
/// and go alike.
pub(super) fn environment(at: usize, now_ms: u64) -> Environment {
    let lease_now_ms = now_ms + 1_000_000 * (1 + u64::try_from(at).unwrap());
    Environment { now: Timestamp::UNIX_EPOCH, lease_now_ms, seed: [1; 16] }
}

impl Scene {
    pub(super) fn new() -> Self {
        let mut scene = Self { root: Root::default(), model: ModelUuid(Default::default()), asked: 0 };
        let operator = Caller::User("admin".parse().unwrap());
        scene.take(&Caller::Worker, Input::Worker(WorkerCommand::Initialize { name: "home".into() }));
        let add = ControllerCommand::add_model("m".parse().unwrap());
        match scene.take(&operator, Input::Controller(add)) {
            Output::Answer(Answer::Model { uuid }) => scene.model = uuid,
            other => panic!("{other:?}"),
        }
        for name in AGENTS {
            let agent: AgentName = name.parse().unwrap();
            scene.take(&Caller::Agent(agent.clone()), Input::Register(agent.clone(), host(name)));
            scene.take(&scene.runner(&agent), Input::Runner(scene.model, RunnerCommand::Attach));
        }
        let metadata = "name: app\nsummary: s\ndescription: d\n";
        let meta = CharmMeta::parse(&CharmFiles { metadata: Some(metadata.into()), ..CharmFiles::default() })
            .unwrap();
        let (digest, component) = (Digest::of(b"charm"), Digest::of(b"component"));
        let reader = MetaReader::NEWEST;
        let charm = UploadedCharm { digest, component, meta, size: 1, reader };
        scene.take(&operator, Input::UploadCharm(charm));
        scene.take(&operator, Input::Model(scene.model, deploy(digest)));
        loop {
            let env = environment(0, 0);
            let (due, _) = due_work(&scene.root, env.now, env.lease_now_ms, &WorkSchedule::default());
            if due.is_empty() {
                return scene;
            }
            for command in due {
                scene.take(&Caller::Worker, Input::Worker(command));
            }
        }
    }

    /// Returns the state of a controller that was just started.
    pub(super) fn known(&self) -> Known {
        Known { root: self.root.clone(), model: self.model }
    }

    /// Has a controller's model evaluate the claim of a unit.
    pub(super) fn claim(&self, known: &Known, unit: usize, env: &Environment) -> (Changes, Granted) {
        let name: UnitName = format!("{APPLICATION}/{unit}").parse().unwrap();
        let application = name.application().clone();
        let claim = LeaseClaim { unit: name, application, seconds: LEASE_SECONDS };
        let caller = self.runner(&AGENTS[unit].parse().unwrap());
        let input = Input::Runner(self.model, RunnerCommand::Claim(claim));
        match evaluate(&known.root, &caller, &input, env).unwrap() {
            (changes, Output::Runner(RunnerAnswer::Granted { seconds, .. })) => {
                (changes, Granted::For(seconds))
            }
            (changes, _) => (changes, Granted::No),
        }
    }

    fn runner(&self, agent: &AgentName) -> Caller {
        Caller::Runner { agent: agent.clone(), model: self.model }
    }

    fn take(&mut self, caller: &Caller, input: Input) -> Output {
        self.asked += 1;
        let seed = u128::from(self.asked).to_le_bytes();
        let env = Environment { seed, ..environment(0, 0) };
        let (changes, output) = evaluate(&self.root, caller, &input, &env).unwrap();
        self.root = self.root.apply(&changes, Revision(0));
        output
    }
}

fn host(name: &str) -> Register {
    Register {
        addresses: vec!["10.0.0.1".into()],
        interfaces: Vec::new(),
        boot_id: name.into(),
        hostname: name.into(),
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
    }
}

fn deploy(charm: Digest) -> Command {
    Command::Deploy(Deploy {
        placement: AGENTS.map(|agent| Placement::Agent(agent.parse().unwrap())).into(),
        ..Deploy::of(charm, 2)
    })
}
