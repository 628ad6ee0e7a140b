//! Dialogues of operators with commands in containers (decision 111): the operator's end of one. The controller reads none
//! of what is said; it knows when each side spoke last, and how the command ended.

mod watched;

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use periapt_host_api::{
    AgentName, ErrorCode, Refusal, UserName, excerpt,
    exec_session::{ExecSessionOrder, ExecSessionOutput},
    workload_log::WorkloadLogPart,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use self::watched::{SessionEnd, SessionWatch};
use crate::{
    bounds::PatientStream,
    presence::Presence,
    workload_orders::{MAX_PIECE_BYTES, OpenOrder, WorkloadOrders},
};

/// The time in which an agent begins a command. A client waits for its answer for 30 seconds.
const BEGUN_WITHIN: Duration = Duration::from_secs(20);

/// The operator's end of a session that is ordered. Dropping it ends the session, and its agent kills the command.
pub(crate) struct ExecSession {
    order: OpenOrder,
    input: OperatorInput,
    watch: SessionWatch,
}

/// The operator's end of a session whose command runs. Dropping it ends the session, and its agent kills the command.
pub(crate) struct RunningSession {
    order: OpenOrder,
    input: OperatorInput,
    end: SessionEnd,
    stream: PatientStream,
    /// True once the last line was returned.
    is_over: bool,
    _watch: AbortOnDropHandle<()>,
}

/// The input of the operator, which a task hands over to the agent as the agent takes it.
struct OperatorInput {
    _pump: AbortOnDropHandle<()>,
    /// Told of each piece, and of each part that the operator takes.
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
    /// Ready once this controller does not keep up with its log, and does not know any more who may speak.
    pub(crate) lost: BoxFuture<'static, ()>,
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
        let SessionParts { orders, presence, stop, lost } = parts;
        let (order, pieces) = orders.open_session(agent.clone(), user, order)?;
        let (spoken, left) = (Arc::new(Notify::new()), CancellationToken::new());
        let pump = pump((first, rest), pieces, Arc::clone(&spoken), left.clone());
        let input = OperatorInput { _pump: AbortOnDropHandle::new(tokio::spawn(pump)), spoken, left };
        let (teller, ended) = oneshot::channel();
        let watch = SessionWatch {
            id: order.id(),
            orders: orders.clone(),
            agent,
            presence,
            stop,
            lost,
            spoken: Arc::clone(&input.spoken),
            left: input.left.clone(),
            stream: PatientStream::default(),
            end: SessionEnd::new(teller),
        };
        Ok((Self { order, input, watch }, ended))
    }

    /// Waits until the command runs, and returns the first lines of the answer.
    ///
    /// # Errors
    /// The agent does not answer, or says why the command does not run.
    pub(crate) async fn begun(mut self) -> Result<(Bytes, RunningSession), Refusal> {
        let (until, mut is_taken) = (Instant::now() + BEGUN_WITHIN, false);
        loop {
            let part = tokio::select! {
                part = timeout_at(until, self.order.parts.recv()) => part,
                () = self.input.left.cancelled() => return Err(self.refused("the client has left".to_owned())),
            };
            match part {
                Ok(Some((WorkloadLogPart::Begun, _))) => is_taken = true,
                Ok(Some((WorkloadLogPart::Data, lines))) if lines.is_empty() => {}
                Ok(Some((WorkloadLogPart::Data, lines))) => return Ok((lines, self.running())),
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

    fn running(self) -> RunningSession {
        let Self { order, input, watch } = self;
        let (end, stream) = (watch.end.clone(), watch.stream.clone());
        let watch = AbortOnDropHandle::new(tokio::spawn(watch.run()));
        RunningSession { order, input, end, stream, is_over: false, _watch: watch }
    }

    /// Returns the refusal for an agent that has taken the order, and has not begun the command in time. The command may have
    /// run, so no client orders it again by itself.
    fn not_begun(&self) -> Refusal {
        let agent = &self.watch.agent;
        let text = format!("agent {agent} did not begin the command in time: if it runs, it is killed");
        self.watch.end.note(&text);
        Refusal::new(ErrorCode::OutcomeUnknown, text)
    }

    /// Returns the refusal for an agent that has not taken the order.
    fn silent(&self) -> Refusal {
        let text = format!("agent {} does not answer: its program may be an earlier one", self.watch.agent);
        self.watch.end.note(&text);
        Refusal::new(ErrorCode::TryAgain, text)
    }

    fn refused(&self, reason: String) -> Refusal {
        self.watch.end.note(&reason);
        Refusal::not_found(reason)
    }
}

impl RunningSession {
    /// Returns the life of the answer. It lasts beyond the last line, for which its reader may have no room yet.
    pub(crate) fn stream(&self) -> PatientStream {
        self.stream.clone()
    }

    /// Waits for the next lines of the answer; none at the end. An operator may wait with the next call for as long as the
    /// session lasts: the agent hands no more over meanwhile.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        loop {
            match self.order.parts.recv().await {
                // A sign of life of the agent.
                Some((WorkloadLogPart::Begun | WorkloadLogPart::Data, lines)) if lines.is_empty() => {}
                Some((WorkloadLogPart::Begun | WorkloadLogPart::Data, lines)) => {
                    self.input.spoken.notify_one();
                    return Some(lines);
                }
                Some((WorkloadLogPart::End, code)) => return Some(self.exited(&code)),
                Some((WorkloadLogPart::Failed, reason)) => return Some(self.failed(words(&reason))),
                // The session was ended here, after these parts.
                None => {
                    let reason = self.end.take_reason()?;
                    return Some(self.failed(reason));
                }
            }
        }
    }

    fn exited(&mut self, code: &[u8]) -> Bytes {
        match std::str::from_utf8(code).ok().and_then(|code| code.parse().ok()) {
            Some(code) => self.over(&format!("exit code {code}"), &ExecSessionOutput::Exit(code)),
            None => self.failed("the agent tells no exit code".to_owned()),
        }
    }

    fn failed(&mut self, reason: String) -> Bytes {
        let end = reason.clone();
        self.over(&end, &ExecSessionOutput::Failed(reason))
    }

    /// Returns the last line.
    fn over(&mut self, end: &str, last: &ExecSessionOutput) -> Bytes {
        self.end.note(end);
        self.is_over = true;
        line(last)
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
mod tests;
