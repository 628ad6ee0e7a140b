//! A controller with many models, for tests of costs.

use periapt_host_api::{
    AgentName, MachineId, Revision, Timestamp,
    agent::Register,
    command::{Caller, ControllerCommand},
    status::Life,
};

use super::Root;
use crate::{
    Changes, Environment, Input, WorkerCommand,
    entity::{EntityKey, Machine, ModelKey},
    evaluate,
};

/// The models of the controller.
pub(crate) const MODELS: usize = 10_000;
/// The models in which the agent `few` has a machine.
pub(crate) const FEW: usize = 3;

/// A controller's state, changed by one command after the other.
pub(crate) struct Large {
    pub(crate) root: Root,
    pub(crate) env: Environment,
    asked: u128,
}

impl Large {
    pub(crate) fn ask(&mut self, caller: &Caller, input: &Input) -> Result<(), periapt_host_api::Refusal> {
        self.asked += 1;
        self.env.seed = self.asked.to_be_bytes();
        let (changes, _) = evaluate(&self.root, caller, input, &self.env)?;
        self.root = self.root.apply(&changes, Revision(0));
        Ok(())
    }

    pub(crate) fn work(&mut self, command: WorkerCommand) {
        self.ask(&Caller::Worker, &Input::Worker(command)).unwrap();
    }

    /// Returns a controller with models that have a machine each, nearly all of them on the agent `many`.
    pub(crate) fn new() -> Self {
        let env = Environment { now: Timestamp::UNIX_EPOCH, lease_now_ms: 0, seed: [0; 16] };
        let mut controller = Self { root: Root::default(), env, asked: 0 };
        controller.work(WorkerCommand::Initialize { name: "home".to_owned() });
        for agent in ["few", "many", "free"] {
            let register = Register {
                addresses: vec!["10.0.0.1".to_owned()],
                interfaces: Vec::new(),
                boot_id: String::new(),
                hostname: agent.to_owned(),
                availability_zone: String::new(),
                cores: 0,
                tags: Default::default(),
                version: String::new(),
                engine: String::new(),
                storage_limit: None,
                program: None,
                peer_port: None,
                firewall_problem: None,
                container_problem: None,
            };
            let agent: AgentName = agent.parse().unwrap();
            controller.ask(&Caller::Agent(agent.clone()), &Input::Register(agent, register)).unwrap();
        }
        let admin = Caller::User("admin".parse().unwrap());
        for number in 0..MODELS {
            let add = ControllerCommand::add_model(format!("m{number}").parse().unwrap());
            controller.ask(&admin, &Input::Controller(add)).unwrap();
        }
        let models: Vec<_> = controller.root.models().map(|(uuid, _)| *uuid).collect();
        assert_eq!(models.len(), MODELS);
        let mut changes = Changes::default();
        for (number, uuid) in models.into_iter().enumerate() {
            let agent = if number < FEW { "few" } else { "many" }.parse().unwrap();
            let (id, created_at) = (MachineId(0), Timestamp::UNIX_EPOCH);
            let machine = Machine { id, agent, life: Life::Alive, created_at };
            changes.puts.insert(EntityKey::InModel(uuid, ModelKey::Machine(id)), Some(machine.into()));
        }
        controller.root = controller.root.apply(&changes, Revision(1));
        controller
    }
}
