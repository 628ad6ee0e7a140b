//! Agents that use their certificates, or the names of others, for what is not theirs.

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use periapt_client::{Client, ClientCertificate, Identity, NdJson};
use periapt_host_api::{
    AgentName, ErrorCode, ModelUuid, UnitName,
    agent::{Admission, CertificateRequest, Register, RunnerCommand},
    command::{Command, ControllerCommand, Force},
    secret::{SecretId, SecretKey, SecretRevision},
    storage::UnitStorage,
    token::{TOKEN_BYTES, Token, TokenKind},
};
use periapt_transport::AgentKey;

use super::{callers::Refusals, row::StoppedBy, target::AttackedController};

/// The time for which a join token can be used.
const JOINS_WITHIN_SECONDS: u64 = 60;

/// An agent that has joined with a key of its own, and has registered.
struct JoinedAgent {
    name: AgentName,
    key: AgentKey,
    certificate: ClientCertificate,
    client: Client,
}

impl JoinedAgent {
    async fn new(target: &AttackedController, name: &str) -> anyhow::Result<Self> {
        let name: AgentName = name.parse()?;
        let mut secret = [7; TOKEN_BYTES];
        secret.iter_mut().zip(name.as_str().bytes()).for_each(|(place, byte)| *place = byte);
        let (key, token) = (AgentKey::generate()?, Token::new(TokenKind::Join, secret));
        let (agent, valid_for) = (name.clone(), JOINS_WITHIN_SECONDS);
        let admission = Admission { agent, token: token.digest(), valid_for, again: true };
        target.operator()?.controller_command(ControllerCommand::AdmitAgent(admission)).await?;
        let asked = CertificateRequest { request: key.request()?, token: Some(token) };
        let issued = target.stranger(Identity::Local)?.agent_certificate(&name, &asked).await?;
        let certificate = ClientCertificate::default();
        certificate.set(&issued.certificate, &key)?;
        let client = target.showing(certificate.clone())?;
        let host = Register {
            addresses: vec!["192.0.2.7".to_owned()],
            interfaces: Vec::new(),
            boot_id: "1".to_owned(),
            hostname: name.to_string(),
            availability_zone: String::new(),
            cores: 1,
            tags: Default::default(),
            version: String::new(),
            engine: String::new(),
            storage_limit: None,
            program: None,
        };
        client.register(&name, &host).await?;
        Ok(Self { name, key, certificate, client })
    }

    /// Asks for the view of a model as an agent, commits to it, and fetches a secret.
    async fn expect_refused(
        client: &Client,
        (agent, model): (&AgentName, ModelUuid),
        refusals: &mut Refusals,
        expected: ErrorCode,
    ) -> anyhow::Result<()> {
        let attach = || vec![RunnerCommand::Attach];
        let key = SecretKey { id: SecretId::from_bytes([1; 12]), revision: SecretRevision(1) };
        let unit: UnitName = "mysql/0".parse()?;
        refusals.expect("a view", expected, client.watch(agent, &model, None).await);
        refusals.expect("an attachment", expected, client.runner_commands(agent, &model, attach()).await);
        refusals.expect("a secret", expected, client.unit_secret(agent, &model, &unit, &key).await);
        Ok(())
    }
}

/// Waits until a stream has ended.
async fn ended<T>(mut stream: NdJson<T>) {
    while let Some(Ok(_)) = stream.next().await {}
}

/// An agent whose unit went away while it followed the model.
pub(super) async fn stale_agent(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let stale = JoinedAgent::new(target, "stale").await?;
    let other = JoinedAgent::new(target, "other").await?;
    let model = target.honest_model;
    let mut assigned = stale.client.assignments(&stale.name).await?;
    target.deploy_honest("mysql", "stale")?;
    while !assigned.next().await.context("assignments")??.models.contains_key(&model) {}
    let mut watch = stale.client.watch(&stale.name, &model, None).await?;
    ensure!(matches!(watch.next().await, Some(Ok(_))), "the agent sees the model of its unit");
    stale.client.runner_command(&stale.name, &model, RunnerCommand::Attach).await?;
    let force = Some(Force { max_wait: 0 });
    let remove = Command::RemoveUnit { unit: "mysql/0".parse()?, force, storage: UnitStorage::default() };
    target.operator()?.command(&model.into(), remove).await?;
    ended(watch).await;

    let (mut refusals, denied) = (Refusals::default(), ErrorCode::PermissionDenied);
    for agent in [&stale.name, &other.name] {
        JoinedAgent::expect_refused(&stale.client, (agent, model), &mut refusals, denied).await?;
    }
    refusals.expect("another's assignments", denied, stale.client.assignments(&other.name).await);
    refusals.expect("all models", denied, stale.client.models().await);
    refusals.expect("the model", denied, stale.client.status(&model.into()).await);
    Ok(refusals.stopped())
}

/// An agent that is removed while it follows its assignments.
pub(super) async fn removed_agent(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let removed = JoinedAgent::new(target, "removed").await?;
    let mut assigned = removed.client.assignments(&removed.name).await?;
    ensure!(matches!(assigned.next().await, Some(Ok(_))), "the agent follows its assignments");
    let remove = ControllerCommand::RemoveAgent { agent: removed.name.clone(), force: false };
    target.operator()?.controller_command(remove).await?;
    ended(assigned).await;

    let (mut refusals, unknown) = (Refusals::default(), ErrorCode::NotLoggedIn);
    let agent = (&removed.name, target.honest_model);
    for client in [removed.client, target.showing(removed.certificate)?] {
        refusals.expect("its assignments", unknown, client.assignments(&removed.name).await);
        JoinedAgent::expect_refused(&client, agent, &mut refusals, unknown).await?;
        let renewal = CertificateRequest { request: removed.key.request()?, token: None };
        refusals.expect("a certificate", unknown, client.agent_certificate(&removed.name, &renewal).await);
    }
    Ok(refusals.stopped())
}

/// A caller that calls itself an agent, and proves nothing.
pub(super) async fn pretended_agent(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let agent: AgentName = "stale".parse()?;
    let mut refusals = Refusals::default();
    let named = || Identity::Agent(agent.clone());
    for (client, expected) in [
        (target.stranger(named())?, ErrorCode::NotLoggedIn),
        // The controller believes users of its own socket, and no agents.
        (target.on_socket(named())?, ErrorCode::PermissionDenied),
    ] {
        refusals.expect("its assignments", expected, client.assignments(&agent).await);
        let named = (&agent, target.honest_model);
        JoinedAgent::expect_refused(&client, named, &mut refusals, expected).await?;
    }
    Ok(refusals.stopped())
}
