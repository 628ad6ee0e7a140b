//! The calls of an agent's keeper, for itself and for its runners.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Method, header};
use periapt_host_api::{
    AgentName, ModelUuid, RequestId, Revision, UnitName,
    agent::{
        AgentAssignments, AgentPlace, CertificateRequest, IssuedCertificate, Register, RunnerAnswer,
        RunnerCommand,
    },
    api::{Registered, WatchPosition},
    command::{CommandResults, Commands},
    secret::{SecretData, SecretKey},
    view::{Frame, FrameLine, FrameLines},
    workload_log::{PartAnswer, WorkloadLogPart},
};

use crate::{
    Client, NdJson, Result, ndjson,
    request::{Content, Received},
    seen,
};

impl Client {
    /// Registers the agent; its keeper does so at each start.
    pub async fn register(&self, agent: &AgentName, register: &Register) -> Result<Registered> {
        self.call(Method::PUT, format!("/v1/agents/{agent}")).json(register)?.value().await
    }

    /// Requests the agent's certificate, to join or to renew it.
    pub async fn agent_certificate(
        &self,
        agent: &AgentName,
        request: &CertificateRequest,
    ) -> Result<IssuedCertificate> {
        self.call(Method::POST, format!("/v1/agents/{agent}/certificate")).json(request)?.value().await
    }

    /// Streams the agent's assignments: once at the start, and in full after each change.
    pub async fn assignments(&self, agent: &AgentName) -> Result<NdJson<AgentAssignments>> {
        let Received { peer, response, .. } =
            self.get(format!("/v1/agents/{agent}/assignments")).response().await?;
        let (told, seen) = (seen::told(response.headers()), self.options().seen.clone());
        let assignments: NdJson<AgentAssignments> = ndjson::decode(response.into_body(), peer);
        let Some(WatchPosition { store, .. }) = told else { return Ok(assignments) };
        let noted = assignments.inspect(move |item| {
            if let Ok(AgentAssignments { revision, .. }) = item {
                seen.raise(WatchPosition { store, revision: *revision });
            }
        });
        Ok(Box::pin(noted.fuse()))
    }

    /// Streams the frames of a runner's view from a position. If the controller cannot resume from it, the first
    /// frame is a full replacement. A frame without content is the heartbeat.
    pub async fn watch(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
        position: Option<WatchPosition>,
    ) -> Result<NdJson<Frame>> {
        let lines = self.watch_lines(agent, model, position).await?;
        let state = (lines, FrameLines::default(), self.clone());
        let frames = stream::unfold(state, |(mut lines, mut begun, client)| async move {
            loop {
                let frame = match lines.next().await? {
                    Ok(line) => begun.take(line).map_err(|lost| client.protocol(lost.to_string())),
                    Err(error) => Err(error),
                };
                if let Some(frame) = frame.transpose() {
                    return Some((frame, (lines, begun, client)));
                }
            }
        });
        Ok(Box::pin(frames.fuse()))
    }

    /// Streams the lines of these frames. A frame that is too large for one line takes several.
    pub async fn watch_lines(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
        position: Option<WatchPosition>,
    ) -> Result<NdJson<FrameLine>> {
        let call = self.get(format!("/v1/agents/{agent}/models/{model}/watch"));
        let call = match position {
            Some(WatchPosition { store, revision }) => call.query("store", store).query("revision", revision),
            None => call,
        };
        let (lines, seen) = (call.lines::<FrameLine>().await?, self.options().seen.clone());
        let noted = lines.inspect(move |item| {
            if let Ok(line) = item
                && line.is_last()
            {
                seen.raise(WatchPosition { store: line.store, revision: line.to });
            }
        });
        Ok(Box::pin(noted.fuse()))
    }

    /// Sends the calls of one runner; each has its own result. A commit that is sent again after a broken connection
    /// gets the same answer.
    pub async fn runner_commands(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
        commands: impl Into<Commands<RunnerCommand>>,
    ) -> Result<CommandResults<RunnerAnswer>> {
        let path = format!("/v1/agents/{agent}/models/{model}/commands");
        self.call(Method::POST, path).json(&commands.into())?.value().await
    }

    /// Returns the ways to the other agents with units of a runner's applications and of related ones.
    pub async fn peers(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
    ) -> Result<BTreeMap<AgentName, AgentPlace>> {
        self.get(format!("/v1/agents/{agent}/models/{model}/peers")).value().await
    }

    /// Hands a part of a workload's output over, of at most 64 KiB, once the operator who ordered it has room for it.
    pub async fn workload_log_part(
        &self,
        agent: &AgentName,
        id: RequestId,
        (part, bytes): (WorkloadLogPart, Bytes),
    ) -> Result<PartAnswer> {
        let call = self.call(Method::POST, format!("/v1/agents/{agent}/workload-logs/{id}"));
        let octets = HeaderValue::from_static("application/octet-stream");
        let call = call.query("part", part.as_str()).header(header::CONTENT_TYPE, octets);
        call.content(Content::Whole(bytes)).value().await
    }

    /// Returns the content of a secret that a unit may read.
    pub async fn unit_secret(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
        unit: &UnitName,
        key: &SecretKey,
    ) -> Result<SecretData> {
        let SecretKey { id, revision } = key;
        let path = format!("/v1/agents/{agent}/models/{model}/units/{unit}/secrets/{id}/{revision}");
        self.get(path).value().await
    }

    /// Sends one call of a runner and returns the answer with its revision. A refusal of the call is an error.
    pub async fn runner_command(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
        command: RunnerCommand,
    ) -> Result<(RunnerAnswer, Revision)> {
        let results = self.runner_commands(agent, model, vec![command]).await?;
        self.only(results)
    }
}
