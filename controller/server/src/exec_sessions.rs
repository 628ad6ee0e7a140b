//! Dialogues of operators with commands in containers (decision 111): the operator's end of one. The controller reads none
//! of what is said; it knows when each side spoke last, and how the command ended.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use periapt_host_api::{
    AgentName, ErrorCode, Refusal, UserName, excerpt,
    exec_session::{ExecSessionOrder, ExecSessionOutput},
    workload_log::WorkloadLogPart,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, sleep, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    presence::Presence,
    workload_orders::{MAX_PIECE_BYTES, OpenOrder, WorkloadOrders},
};

/// The time in which an agent begins a command. A client waits for its answer for 30 seconds.
const BEGUN_WITHIN: Duration = Duration::from_secs(20);

/// The time after which a session ends in which neither side has said anything: as in Kubernetes.
const IDLE: Duration = Duration::from_secs(4 * 60 * 60);

/// The time after which an agent has lost a session of which it says nothing: it asks for input, or tells that the command
/// lives, every ten seconds.
const LOST: Duration = Duration::from_secs(60);

/// The pause between looks whether the agent is still there.
const LOOKS: Duration = Duration::from_secs(5);

/// The operator's end of a session. Dropping it ends the session, and its agent kills the command.
pub(crate) struct ExecSession {
    order: OpenOrder,
    agent: AgentName,
    presence: Presence,
    stop: CancellationToken,
    input: OperatorInput,
    /// The time at which either side said something last.
    spoken: Instant,
    /// Takes the end in words, once.
    ends: Option<oneshot::Sender<String>>,
}

/// The input of the operator, which a task hands over to the agent as the agent takes it.
struct OperatorInput {
    _pump: AbortOnDropHandle<()>,
    /// Told of each piece.
    spoken: Arc<Notify>,
    /// Cancelled once the operator has left.
    left: CancellationToken,
}

/// The parts of the controller that a session needs.
pub(crate) struct SessionParts<'a> {
    /// The orders to agents.
    pub(crate) orders: &'a WorkloadOrders,
    /// The connected agents.
    pub(crate) presence: Presence,
    /// The token that ends all streams.
    pub(crate) stop: CancellationToken,
}

impl ExecSession {
    /// Orders a session from an agent. `input` has the bytes of the operator's content after its first line: those that
    /// have come, and the rest. Returns a receiver of the session's end in words, too; it fails if the operator leaves first.
    ///
    /// # Errors
    /// Too many sessions are open.
    pub(crate) fn open(
        parts: SessionParts<'_>,
        (agent, user): (AgentName, UserName),
        order: ExecSessionOrder,
        (first, rest): (Bytes, Body),
    ) -> Result<(Self, oneshot::Receiver<String>), Refusal> {
        let (order, pieces) = parts.orders.open_session(agent.clone(), user, order)?;
        let (spoken, left) = (Arc::new(Notify::new()), CancellationToken::new());
        let pump = pump((first, rest), pieces, Arc::clone(&spoken), left.clone());
        let input = OperatorInput { _pump: AbortOnDropHandle::new(tokio::spawn(pump)), spoken, left };
        let (ends, ended) = oneshot::channel();
        let SessionParts { presence, stop, .. } = parts;
        let (spoken, ends) = (Instant::now(), Some(ends));
        Ok((Self { order, agent, presence, stop, input, spoken, ends }, ended))
    }

    /// Waits until the command runs, and returns the first lines of the answer.
    ///
    /// # Errors
    /// The agent does not answer, or says why the command does not run.
    pub(crate) async fn begun(&mut self) -> Result<Bytes, Refusal> {
        let (until, mut is_taken) = (Instant::now() + BEGUN_WITHIN, false);
        loop {
            let part = tokio::select! {
                part = timeout_at(until, self.order.parts.recv()) => part,
                () = self.input.left.cancelled() => return Err(self.refused("the client has left".to_owned())),
            };
            match part {
                Ok(Some((WorkloadLogPart::Begun, _))) => is_taken = true,
                Ok(Some((WorkloadLogPart::Data, lines))) if lines.is_empty() => {}
                Ok(Some((WorkloadLogPart::Data, lines))) => return Ok(lines),
                Ok(Some((WorkloadLogPart::Failed, reason))) => return Err(self.refused(words(&reason))),
                Ok(Some((WorkloadLogPart::End, _)) | None) => {
                    return Err(self.refused("the command has not begun".to_owned()));
                }
                Err(_) => {
                    // No more is taken from the agent, which ends the command then.
                    self.order.parts.close();
                    // It may have taken the order a moment ago.
                    let is_taken = is_taken || self.order.parts.try_recv().is_ok();
                    return Err(if is_taken { self.not_begun() } else { self.silent() });
                }
            }
        }
    }

    /// Returns the refusal for an agent that has taken the order, and has not begun the command in time. The command may have
    /// run, so no client orders it again by itself.
    fn not_begun(&mut self) -> Refusal {
        let text =
            format!("agent {} did not begin the command in time: if it runs, it is killed", self.agent);
        self.note_end(&text);
        Refusal::new(ErrorCode::OutcomeUnknown, text)
    }

    /// Returns the refusal for an agent that has not taken the order.
    fn silent(&mut self) -> Refusal {
        let text = format!("agent {} does not answer: its program may be an earlier one", self.agent);
        self.note_end(&text);
        Refusal::new(ErrorCode::TryAgain, text)
    }

    /// Waits for the next lines of the answer; none at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        // The end was told.
        self.ends.as_ref()?;
        loop {
            tokio::select! {
                part = self.order.parts.recv() => match part? {
                    // A sign of life of the agent.
                    (WorkloadLogPart::Begun | WorkloadLogPart::Data, lines) if lines.is_empty() => {}
                    (WorkloadLogPart::Begun | WorkloadLogPart::Data, lines) => {
                        self.spoken = Instant::now();
                        return Some(lines);
                    }
                    (WorkloadLogPart::End, code) => return Some(self.exited(&code)),
                    (WorkloadLogPart::Failed, reason) => return Some(self.failed(words(&reason))),
                },
                () = self.input.spoken.notified() => self.spoken = Instant::now(),
                () = self.input.left.cancelled() => return None,
                () = self.stop.cancelled() => {
                    return Some(self.failed("the controller stops, and the command is killed".to_owned()));
                }
                () = sleep(LOOKS) => {
                    if !self.presence.is_here(&self.agent) {
                        let text = format!("agent {} is not connected any more", self.agent);
                        return Some(self.failed(text));
                    }
                    if self.order.silence() >= LOST {
                        let text = format!("agent {} does not serve the session any more", self.agent);
                        return Some(self.failed(text));
                    }
                    if self.spoken.elapsed() >= IDLE {
                        let hours = IDLE.as_secs() / 3_600;
                        return Some(self.failed(format!("nothing was said for {hours} hours")));
                    }
                }
            }
        }
    }

    fn exited(&mut self, code: &[u8]) -> Bytes {
        match std::str::from_utf8(code).ok().and_then(|code| code.parse().ok()) {
            Some(code) => {
                self.note_end(&format!("exit code {code}"));
                line(&ExecSessionOutput::Exit(code))
            }
            None => self.failed("the agent tells no exit code".to_owned()),
        }
    }

    fn failed(&mut self, reason: String) -> Bytes {
        self.note_end(&reason);
        line(&ExecSessionOutput::Failed(reason))
    }

    fn refused(&mut self, reason: String) -> Refusal {
        self.note_end(&reason);
        Refusal::not_found(reason)
    }

    fn note_end(&mut self, end: &str) {
        if let Some(ends) = self.ends.take() {
            // The entry is written without an end if the controller stops.
            let _ = ends.send(end.to_owned());
        }
    }
}

/// Returns an agent's reason as the operator is told it.
fn words(reason: &[u8]) -> String {
    excerpt::of_message(&String::from_utf8_lossy(reason))
}

fn line(output: &ExecSessionOutput) -> Bytes {
    let mut line = serde_json::to_vec(output).unwrap_or_default();
    line.push(b'\n');
    line.into()
}

/// Hands the operator's lines over in pieces, each once the agent has taken those before it.
async fn pump(
    (first, mut rest): (Bytes, Body),
    pieces: mpsc::Sender<Bytes>,
    spoken: Arc<Notify>,
    left: CancellationToken,
) {
    let mut bytes = first;
    loop {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MAX_PIECE_BYTES));
            if pieces.send(piece).await.is_err() {
                return;
            }
            spoken.notify_one();
        }
        bytes = match rest.frame().await {
            // Trailers are ignored.
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            // A client that ends its content, or breaks off, has left.
            Some(Err(_)) | None => return left.cancel(),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use periapt_host_api::{ModelUuid, RequestId, exec_session::ExecSessionRequest};
    use uuid::Uuid;

    use super::*;
    use crate::clock::SystemRandomSource;

    fn agent() -> AgentName {
        "a1".parse().unwrap()
    }

    struct Scene {
        orders: WorkloadOrders,
        presence: Presence,
        stop: CancellationToken,
    }

    impl Scene {
        fn new() -> Self {
            let orders = WorkloadOrders::new(Arc::new(SystemRandomSource));
            Self { orders, presence: Presence::default(), stop: CancellationToken::new() }
        }

        fn open(&self, rest: Body) -> (ExecSession, oneshot::Receiver<String>) {
            let request = ExecSessionRequest {
                container: "web".parse().unwrap(),
                command: vec!["sh".to_owned()],
                terminal: None,
            };
            let model = ModelUuid(Uuid::nil());
            let order = ExecSessionOrder { model, unit: "app/0".parse().unwrap(), request };
            let parts = SessionParts {
                orders: &self.orders,
                presence: self.presence.clone(),
                stop: self.stop.clone(),
            };
            let who = (agent(), "jane".parse().unwrap());
            ExecSession::open(parts, who, order, (Bytes::from_static(b"first"), rest)).unwrap()
        }

        fn id(&self) -> RequestId {
            *self.orders.sessions_of(&agent()).keys().next().unwrap()
        }

        async fn pass(&self, part: WorkloadLogPart, text: &'static str) {
            self.orders.pass(&agent(), self.id(), (part, Bytes::from_static(text.as_bytes()))).await.unwrap();
        }
    }

    /// Returns a content that goes on after these bytes.
    fn open_content(bytes: &'static [u8]) -> Body {
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(bytes))]);
        Body::from_stream(futures_util::StreamExt::chain(first, stream::pending()))
    }

    fn text(line: Option<Bytes>) -> String {
        String::from_utf8(line.unwrap().to_vec()).unwrap()
    }

    #[tokio::test]
    async fn what_is_said_goes_both_ways_and_the_exit_code_is_the_last_line() {
        let scene = Scene::new();
        let _here = scene.presence.connected(agent());
        let (mut session, ended) = scene.open(open_content(b"second"));
        scene.pass(WorkloadLogPart::Begun, "").await;
        scene.pass(WorkloadLogPart::Data, "\"running\"\n").await;
        assert_eq!(session.begun().await.unwrap(), "\"running\"\n");
        let mut heard = Vec::new();
        while heard.len() < 11 {
            heard.extend(scene.orders.input(&agent(), scene.id()).await.unwrap());
        }
        assert_eq!(heard, b"firstsecond");
        scene.pass(WorkloadLogPart::Data, "line").await;
        assert_eq!(text(session.next().await), "line");
        scene.pass(WorkloadLogPart::End, "7").await;
        assert_eq!(text(session.next().await), "{\"exit\":7}\n");
        assert_eq!(session.next().await, None);
        assert_eq!(ended.await.unwrap(), "exit code 7");
        drop(session);
        assert!(scene.orders.sessions_of(&agent()).is_empty());
    }

    #[tokio::test]
    async fn a_command_that_does_not_begin_is_refused_with_the_agents_reason() {
        let scene = Scene::new();
        let (mut session, ended) = scene.open(open_content(b""));
        scene.pass(WorkloadLogPart::Begun, "").await;
        scene.pass(WorkloadLogPart::Failed, "cannot find executable \"nosuch\"").await;
        assert!(session.begun().await.unwrap_err().message.contains("nosuch"));
        assert!(ended.await.unwrap().contains("nosuch"));
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_its_session() {
        let scene = Scene::new();
        let (mut session, ended) = scene.open(Body::empty());
        assert_eq!(session.next().await, None);
        drop(session);
        assert!(ended.await.is_err(), "it has left before an end");
        assert!(scene.orders.sessions_of(&agent()).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_with_its_agent_and_its_controller_and_after_a_long_silence() {
        let scene = Scene::new();
        let here = scene.presence.connected(agent());
        let (mut silent, _) = scene.open(open_content(b""));
        assert_eq!(silent.begun().await.unwrap_err().code, ErrorCode::TryAgain);
        drop(silent);
        let (mut taken, _) = scene.open(open_content(b""));
        scene.pass(WorkloadLogPart::Begun, "").await;
        assert_eq!(taken.begun().await.unwrap_err().code, ErrorCode::OutcomeUnknown);
        drop(taken);
        let (mut lost, _ended) = scene.open(open_content(b""));
        assert!(text(lost.next().await).contains("does not serve the session any more"));
        drop(lost);
        let (mut idle, _ended) = scene.open(open_content(b""));
        let (orders, id, began) = (scene.orders.clone(), scene.id(), Instant::now());
        let asks = tokio::spawn(async move { while orders.input(&agent(), id).await.is_ok() {} });
        assert!(text(idle.next().await).contains("nothing was said for 4 hours"));
        assert!(began.elapsed() >= IDLE);
        drop((idle, here));
        asks.await.unwrap();
        let (mut away, _ended) = scene.open(open_content(b""));
        assert!(text(away.next().await).contains("not connected any more"));
        scene.stop.cancel();
        let (mut stopped, _ended) = scene.open(open_content(b""));
        assert!(text(stopped.next().await).contains("the controller stops"));
    }
}
