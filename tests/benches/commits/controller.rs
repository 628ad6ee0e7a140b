//! A controller in this process, with RocksDB and HTTP/2 on loopback, like an agent's controller.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, bail};
use futures_util::StreamExt as _;
use periapt_client::{Client, Identity, NdJson};
use periapt_controller::{Handle, Listen, Options, RunError};
use periapt_host_api::{
    AgentName, Digest, ModelUuid,
    agent::{AgentAssignments, Register},
    command::{Answer, Command, ControllerCommand, Deploy},
};
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    model::Model,
    store::{Batches, Recorded},
};

/// A running controller with the charm `bench` and a connected agent.
pub(crate) struct Controller {
    handle: Handle,
    running: JoinHandle<Result<(), RunError>>,
    operator: Client,
    agent: AgentName,
    /// The agent's stream of assignments. The agent counts as connected while it is open.
    assignments: Mutex<NdJson<AgentAssignments>>,
    charm: Digest,
    /// The batches that the controller's writer commits.
    pub(crate) batches: Batches,
}

impl Controller {
    pub(crate) async fn start(place: &Path) -> anyhow::Result<Self> {
        let engine = periapt_sandbox::engine_version();
        let mut options = Options::in_directory(
            "bench",
            place,
            Listen::InProcess("127.0.0.1:0".parse()?),
            engine,
            periapt_tests::check_helper()?,
        )?;
        let batches = Batches::default();
        options.store = Arc::new(Recorded { directory: place.join("store"), batches: batches.clone() });
        let service = options.build().await?;
        let handle = service.handle();
        let running = tokio::spawn(service.run(CancellationToken::new()));
        let operator = client(&handle, Identity::Local)?;

        let archive = std::fs::read(periapt_tests::packed("bench", place)?)?;
        let charm = operator.upload_charm(archive.into()).await?.digest;
        let agent: AgentName = "here".parse()?;
        let keeper = client(&handle, Identity::Agent(agent.clone()))?;
        let register = Register {
            addresses: vec!["10.0.0.1".to_owned()],
            interfaces: Vec::new(),
            boot_id: "boot".to_owned(),
            hostname: "host".to_owned(),
            availability_zone: String::new(),
            cores: 0,
            tags: Default::default(),
            version: "0.1.0".to_owned(),
            engine: engine.to_owned(),
            storage_limit: None,
        };
        keeper.register(&agent, &register).await?;
        let assignments = Mutex::new(keeper.assignments(&agent).await?);
        Ok(Self { handle, running, operator, agent, assignments, charm, batches })
    }

    /// Connects as the agent.
    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        client(&self.handle, Identity::Agent(self.agent.clone()))
    }

    /// Creates a model with units of the charm, which are related by a peer relation.
    pub(crate) async fn model(&self, name: &str, units: u32) -> anyhow::Result<Model> {
        let command = ControllerCommand::add_model(name.parse()?);
        let Answer::Model { uuid } = self.operator.controller_command(command).await? else {
            bail!("no model was made");
        };
        let deploy = Command::Deploy(Deploy {
            charm: self.charm,
            application: None,
            units,
            config: Default::default(),
            placement: Vec::new(),
            storage: Default::default(),
            trust: false,
            force: false,
            bindings: Default::default(),
            resources: Default::default(),
            attach_storage: Vec::new(),
            constraints: Default::default(),
        });
        self.operator.command(&uuid.into(), deploy).await?;
        self.placed(&uuid, units).await?;
        Model::attach(self.connect()?, self.agent.clone(), uuid).await
    }

    /// Waits until the agent has all units of a model.
    async fn placed(&self, model: &ModelUuid, units: u32) -> anyhow::Result<()> {
        let mut assignments = self.assignments.lock().await;
        loop {
            let assigned = assignments.next().await.context("the agent's stream ended")??;
            if assigned.models.get(model).is_some_and(|assigned| assigned.units == units) {
                return Ok(());
            }
        }
    }

    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.handle.shutdown();
        Ok(self.running.await??)
    }
}

fn client(handle: &Handle, identity: Identity) -> anyhow::Result<Client> {
    Ok(Client::new(periapt_client::Options::new(handle.url(), identity))?)
}
