//! A controller in this process, with RocksDB and HTTP/2 on loopback, with or without TLS.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, bail, ensure};
use futures_util::StreamExt as _;
use periapt_client::{Client, ClientCertificate, Identity, NdJson, Options as ClientOptions, Trust};
use periapt_controller::{Handle, Listen, Options, RunError, TlsListen};
use periapt_host_api::{
    AgentName, Digest, ModelUuid,
    agent::{Admission, AgentAssignments, CertificateRequest, Register},
    command::{Answer, Command, ControllerCommand, Deploy},
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_transport::AgentKey;
use tokio::{sync::Mutex, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    model::Model,
    store::{Batches, Recorded},
};

/// The transport of the agent's requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// HTTP/2 over TCP. The controller believes the agent's name.
    Plain,
    /// HTTP/2 over TLS, as the program has it. The agent shows the certificate that it got when it joined.
    Tls,
}

/// A running controller with the charm `bench` and a connected agent.
pub(crate) struct Controller {
    handle: Handle,
    running: JoinHandle<Result<(), RunError>>,
    operator: Client,
    agent: AgentName,
    /// The options of the agent's clients.
    connects_by: ClientOptions,
    /// The agent's stream of assignments. The agent counts as connected while it is open.
    assignments: Mutex<NdJson<AgentAssignments>>,
    charm: Digest,
    /// The batches that the controller's writer commits.
    pub(crate) batches: Batches,
}

impl Controller {
    pub(crate) async fn start(place: &Path, transport: Transport) -> anyhow::Result<Self> {
        let engine = periapt_sandbox::engine_version();
        let any = "127.0.0.1:0".parse()?;
        let listen = match transport {
            Transport::Plain => Listen::InProcess(any),
            Transport::Tls => Listen::Tls(TlsListen::in_directory(place, any, Vec::new())?),
        };
        let operator = match &listen {
            Listen::Tls(tls) => Some(format!("unix://{}", tls.socket.display())),
            Listen::InProcess(_) | Listen::Memory(_) => None,
        };
        let mut options =
            Options::in_directory("bench", place, listen, engine, periapt_tests::check_helper()?)?;
        let batches = Batches::default();
        options.store = Arc::new(Recorded { directory: place.join("store"), batches: batches.clone() });
        let service = options.build().await?;
        let mut handle = service.handle();
        let running = tokio::spawn(service.run(CancellationToken::new()));
        ensure!(handle.serving().await, "the controller does not serve");
        let operator = operator.unwrap_or_else(|| handle.url());
        let operator = Client::new(ClientOptions::new(operator, Identity::Local))?;
        let archive = std::fs::read(periapt_tests::packed("bench", place)?)?;
        let charm = operator.upload_charm(archive.into()).await?.digest;

        let agent: AgentName = "here".parse()?;
        let mut connects_by = ClientOptions::new(handle.url(), Identity::Agent(agent.clone()));
        if transport == Transport::Tls {
            connects_by.trust = Some(Trust::Authority(std::fs::read_to_string(place.join("ca.pem"))?));
            connects_by.certificate = join(&operator, connects_by.clone(), &agent).await?;
        }
        let keeper = Client::new(connects_by.clone())?;
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
            program: None,
            peer_port: None,
            firewall_problem: None,
            container_problem: None,
        };
        keeper.register(&agent, &register).await?;
        let assignments = Mutex::new(keeper.assignments(&agent).await?);
        Ok(Self { handle, running, operator, agent, connects_by, assignments, charm, batches })
    }

    /// Connects as the agent.
    pub(crate) fn connect(&self) -> anyhow::Result<Client> {
        Ok(Client::new(self.connects_by.clone())?)
    }

    /// Creates a model with units of the charm, which are related by a peer relation.
    pub(crate) async fn model(&self, name: &str, units: u32) -> anyhow::Result<Model> {
        let command = ControllerCommand::add_model(name.parse()?);
        let Answer::Model { uuid } = self.operator.controller_command(command).await? else {
            bail!("no model was made");
        };
        let deploy = Command::Deploy(Deploy::of(self.charm, units));
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

/// Lets the agent join over TLS, and returns its certificate.
async fn join(
    operator: &Client,
    connects_by: ClientOptions,
    agent: &AgentName,
) -> anyhow::Result<ClientCertificate> {
    let (key, token) = (AgentKey::generate()?, Token::new(TokenKind::Join, [7; TOKEN_BYTES]));
    let admission = Admission { agent: agent.clone(), token: token.digest(), valid_for: 60, again: false };
    operator.controller_command(ControllerCommand::AdmitAgent(admission)).await?;
    let request = CertificateRequest { request: key.request()?, token: Some(token) };
    let issued = Client::new(connects_by)?.agent_certificate(agent, &request).await?;
    let certificate = ClientCertificate::default();
    certificate.set(&issued.certificate, &key)?;
    Ok(certificate)
}
