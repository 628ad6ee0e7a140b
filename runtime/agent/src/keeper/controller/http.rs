//! The controller over HTTP/2, with one connection for all calls of an agent.

use std::{path::Path, sync::Arc};

use futures_util::StreamExt as _;
use periapt_client::{Client, ClientError, NdJson};
use periapt_host_api::{
    AgentName, Digest, ErrorCode, ModelUuid, UnitName,
    agent::{AgentAssignments, Register, RunnerAnswer, RunnerCommand},
    api::WatchPosition,
    command::{CommandResults, Commands},
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    view::FrameLine,
};
use tokio::sync::Notify;

use super::{Answers, Controller, ControllerError};

/// A client with the agent's name.
#[derive(Debug, Clone)]
pub(crate) struct HttpController {
    client: Client,
    agent: AgentName,
    refused: Arc<Notify>,
}

impl HttpController {
    /// Creates the interface for one agent. `refused` is notified when the controller does not know the agent by its
    /// certificate: the stream of assignments is open all the time, and is refused then.
    pub(crate) fn new(client: Client, agent: AgentName, refused: Arc<Notify>) -> Self {
        Self { client, agent, refused }
    }
}

impl From<ClientError> for ControllerError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(refusal) if !refusal.code.is_temporary() => Self::Refused(refusal),
            damaged @ ClientError::Damaged { .. } => Self::Unusable(damaged.to_string()),
            other => Self::Away(other.to_string()),
        }
    }
}

fn answers<T: Send + 'static>(stream: NdJson<T>) -> Answers<T> {
    stream.map(|item| item.map_err(ControllerError::from)).boxed()
}

impl Controller for HttpController {
    async fn register(&self, register: Register) -> Result<(), ControllerError> {
        self.client.register(&self.agent, &register).await?;
        Ok(())
    }

    async fn assignments(&self) -> Result<Answers<AgentAssignments>, ControllerError> {
        let opened = self.client.assignments(&self.agent).await;
        let refusal = opened.as_ref().err().and_then(ClientError::refusal);
        if refusal.is_some_and(|refusal| refusal.code == ErrorCode::NotLoggedIn) {
            self.refused.notify_one();
        }
        Ok(answers(opened?))
    }

    async fn watch(
        &self,
        model: ModelUuid,
        position: Option<WatchPosition>,
    ) -> Result<Answers<FrameLine>, ControllerError> {
        Ok(answers(self.client.watch_lines(&self.agent, &model, position).await?))
    }

    async fn commands(
        &self,
        model: ModelUuid,
        commands: Commands<RunnerCommand>,
    ) -> Result<CommandResults<RunnerAnswer>, ControllerError> {
        Ok(self.client.runner_commands(&self.agent, &model, commands).await?)
    }

    async fn secret(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &SecretKey,
    ) -> Result<SecretData, ControllerError> {
        Ok(self.client.unit_secret(&self.agent, &model, unit, key).await?)
    }

    async fn resource(
        &self,
        model: ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
        file: &Path,
    ) -> Result<(), ControllerError> {
        let unusable =
            |error: std::io::Error| ControllerError::Unusable(format!("{}: {error}", file.display()));
        let mut writer = tokio::fs::File::create(file).await.map_err(unusable)?;
        self.client.fetch_unit_resource(&self.agent, &model, unit, key, &mut writer).await?;
        writer.sync_all().await.map_err(unusable)
    }

    async fn charm(&self, digest: Digest, file: &Path) -> Result<(), ControllerError> {
        let unusable =
            |error: std::io::Error| ControllerError::Unusable(format!("{}: {error}", file.display()));
        let mut writer = tokio::fs::File::create(file).await.map_err(unusable)?;
        self.client.fetch_charm_to(&digest, &mut writer).await?;
        writer.sync_all().await.map_err(unusable)
    }
}
