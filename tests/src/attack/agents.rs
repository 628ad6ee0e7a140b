//! Agents that use their certificates, or the names of others, for what is not theirs.

use anyhow::{Context as _, ensure};
use futures_util::StreamExt as _;
use periapt_client::{Client, Identity, NdJson};
use periapt_host_api::{
    AgentName, ErrorCode, ModelUuid, UnitName,
    agent::{CertificateRequest, RunnerCommand},
    command::{Command, ControllerCommand, Force},
    secret::{SecretId, SecretKey, SecretRevision},
    storage::UnitStorage,
};

use super::{callers::Refusals, row::StoppedBy, target::AttackedController};
use crate::joined::JoinedAgent;

/// Lets an agent join the controller.
async fn joined(target: &AttackedController, name: &str) -> anyhow::Result<JoinedAgent> {
    JoinedAgent::new(&target.operator()?, target.over_tls(), name.parse()?).await
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

/// Waits until a stream has ended.
async fn ended<T>(mut stream: NdJson<T>) {
    while let Some(Ok(_)) = stream.next().await {}
}

/// An agent whose unit went away while it followed the model.
pub(super) async fn stale_agent(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let stale = joined(target, "stale").await?;
    let other = joined(target, "other").await?;
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
        expect_refused(&stale.client, (agent, model), &mut refusals, denied).await?;
    }
    refusals.expect("another's assignments", denied, stale.client.assignments(&other.name).await);
    refusals.expect("all models", denied, stale.client.models().await);
    refusals.expect("the model", denied, stale.client.status(&model.into()).await);
    Ok(refusals.stopped())
}

/// An agent that is removed while it follows its assignments.
pub(super) async fn removed_agent(target: &AttackedController) -> anyhow::Result<StoppedBy> {
    let removed = joined(target, "removed").await?;
    let mut assigned = removed.client.assignments(&removed.name).await?;
    ensure!(matches!(assigned.next().await, Some(Ok(_))), "the agent follows its assignments");
    let remove = ControllerCommand::RemoveAgent { agent: removed.name.clone(), force: false };
    target.operator()?.controller_command(remove).await?;
    ended(assigned).await;

    let (mut refusals, unknown) = (Refusals::default(), ErrorCode::NotLoggedIn);
    let agent = (&removed.name, target.honest_model);
    for client in [removed.client, target.showing(removed.certificate)?] {
        refusals.expect("its assignments", unknown, client.assignments(&removed.name).await);
        expect_refused(&client, agent, &mut refusals, unknown).await?;
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
        expect_refused(&client, named, &mut refusals, expected).await?;
    }
    Ok(refusals.stopped())
}
