//! Dialogues with commands in containers: the operator's call, whose content goes on while its answer comes, and the calls
//! of the agent that runs the command.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Method, header};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::Mutex;
use periapt_host_api::{
    AgentName, RequestId, UnitName,
    api::ModelSelector,
    exec_session::{ExecSessionInput, ExecSessionOutput, ExecSessionRequest},
    workload_log::MAX_PART_BYTES,
};
use tokio::sync::mpsc;

use super::blob::pieces;
use crate::{Client, NdJson, RequestOutcome, Result, error::chain, ndjson, request::Received};

/// The lines of input that wait for the connection, each of at most 64 KiB.
const WAITING: usize = 2;

/// The time for an answer's content to arrive after its head.
const COMES_WITHIN: Duration = Duration::from_secs(10);

/// The operator's end of a dialogue. It ends when the sender or the output is dropped.
pub struct ExecSession {
    /// The way to the command.
    pub input: ExecSender,
    /// The lines from the command. The last one is an exit code or a failure; after it, the stream may end with an error.
    pub output: NdJson<ExecSessionOutput>,
}

/// The way to the command of a dialogue.
#[derive(Debug)]
pub struct ExecSender(mpsc::Sender<Bytes>);

impl ExecSender {
    /// Sends a line, once those before it are on their way. Returns false if the session has ended.
    pub async fn send(&self, input: &ExecSessionInput) -> bool {
        match line(input) {
            Ok(line) => self.0.send(line).await.is_ok(),
            Err(_) => false,
        }
    }
}

fn line(input: &ExecSessionInput) -> serde_json::Result<Bytes> {
    let mut line = serde_json::to_vec(input)?;
    line.push(b'\n');
    Ok(line.into())
}

impl Client {
    /// Begins a dialogue with a command in a container of a unit. Returns once the command runs.
    pub async fn exec_session(
        &self,
        model: &ModelSelector,
        unit: &UnitName,
        request: ExecSessionRequest,
    ) -> Result<ExecSession> {
        let begin = line(&ExecSessionInput::Begin(Box::new(request)))
            .map_err(|error| self.protocol(format!("the request cannot be written: {error}")))?;
        // Each attempt has a content of its own. Nothing but its first line is sent before the answer, so nothing is lost
        // with an attempt that fails.
        let newest: Arc<Mutex<Option<mpsc::Sender<Bytes>>>> = Arc::default();
        let slot = Arc::clone(&newest);
        let content = move || {
            let (sender, receiver) = mpsc::channel::<Bytes>(WAITING);
            *slot.lock() = Some(sender);
            let lines = stream::unfold(receiver, |mut receiver| async move {
                let line = receiver.recv().await?;
                Some((Ok::<_, io::Error>(line), receiver))
            });
            stream::iter([Ok::<_, io::Error>(begin.clone())]).chain(lines)
        };
        let call = self.call(Method::POST, format!("/v1/models/{model:#}/units/{unit}/exec-sessions"));
        let lines = HeaderValue::from_static("application/x-ndjson");
        let call = call.beside_others().header(header::CONTENT_TYPE, lines).content(pieces(content));
        let Received { peer, response, .. } = call.response().await?;
        let input = newest.lock().take();
        let input = input.ok_or_else(|| peer.protocol("the session has no input".to_owned()))?;
        Ok(ExecSession { input: ExecSender(input), output: ndjson::decode(response.into_body(), peer) })
    }

    /// Takes the next bytes of a session's input, at most 64 KiB; none if there are none yet. Bytes that are lost on the way
    /// are lost: after an error the session must end.
    pub async fn exec_session_input(&self, agent: &AgentName, id: RequestId) -> Result<Bytes> {
        let call = self.call(Method::POST, format!("/v1/agents/{agent}/exec-sessions/{id}/input"));
        let Received { peer, response, .. } = call.response().await?;
        let lost = |reason: String| peer.unreachable(reason, RequestOutcome::Unknown);
        let read = Limited::new(response.into_body(), MAX_PART_BYTES).collect();
        let read = tokio::time::timeout(COMES_WITHIN, read).await;
        let read = read.map_err(|_| lost("no answer in time".to_owned()))?;
        Ok(read.map_err(|error| lost(chain(error.as_ref())))?.to_bytes())
    }
}
