//! Dialogues of operators with commands in containers (decision 111). The keeper takes the operator's lines from the
//! controller, speaks Pebble's API with the pod, and hands the command's output over in parts, as that of a log.

use std::{collections::BTreeMap, future::Future, os::unix::net::UnixStream, pin::pin, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::{
    FutureExt as _, SinkExt as _, Stream, StreamExt as _,
    future::{BoxFuture, join, try_join},
    stream::{SplitSink, SplitStream},
};
use periapt_hook::WorkloadTarget;
use periapt_host_api::{
    RequestId, UnitName,
    exec_session::{
        ExecBytes, ExecSessionInput, ExecSessionOrder, ExecSessionOutput, ExecSessionRequest,
        MAX_INPUT_LINE_BYTES, TerminalSize,
    },
    workload_log::{MAX_PART_BYTES, WorkloadLogPart},
};
use serde_json::json;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    controller::{Controller, ControllerError, hand_over},
    pods::PodStreams,
};
use crate::pebble_api::{Answer, Api, Change, ContainerError, PebbleWay, Socket, Started};

/// The lines of output that wait to be handed over. The command waits while they do.
const WAITING: usize = 2;

/// The most bytes of a line of output, to which a part is filled up.
const MAX_LINE: usize = 44 << 10;

/// The pause between signs of life to the controller while a command does not read its input.
const ALIVE_EVERY: Duration = Duration::from_secs(10);

/// The time from the first signal to a command whose operator has left to the second one, and for both.
const GRACE: Duration = Duration::from_secs(1);
const KILLED_WITHIN: Duration = Duration::from_secs(3);

const END: &str = r#"{"command":"end"}"#;
const HANGUP: &str = r#"{"command":"signal","signal":{"name":"SIGHUP"}}"#;
const KILL: &str = r#"{"command":"signal","signal":{"name":"SIGKILL"}}"#;

/// The sessions that this agent serves. Dropping one ends it, and kills its command.
#[derive(Debug, Default)]
pub(super) struct ExecSessions(BTreeMap<RequestId, DropGuard>);

impl ExecSessions {
    /// Serves new sessions, and ends those that are gone. `streams` is the way to the pods of a session's model.
    pub(super) fn follow<C: Controller>(
        &mut self,
        controller: &C,
        orders: BTreeMap<RequestId, ExecSessionOrder>,
        streams: impl Fn(&ExecSessionOrder) -> Option<PodStreams>,
    ) {
        self.0.retain(|id, _| orders.contains_key(id));
        for (id, order) in orders {
            self.0.entry(id).or_insert_with(|| {
                let (ends, streams) = (CancellationToken::new(), streams(&order));
                let session = Session { controller: controller.clone(), id };
                tokio::spawn(session.serve(order, streams, ends.clone()));
                ends.drop_guard()
            });
        }
    }
}

/// The way to the pod of a unit's container.
struct PodWay {
    streams: PodStreams,
    unit: UnitName,
    target: WorkloadTarget,
}

impl PebbleWay for PodWay {
    fn open(&self) -> BoxFuture<'_, Result<UnixStream, ContainerError>> {
        let opened = self.streams.open(&self.unit, &self.target);
        opened.map(|opened| opened.map_err(ContainerError::Unreachable)).boxed()
    }
}

/// One session's way to its operator.
struct Session<C> {
    controller: C,
    id: RequestId,
}

/// A command that runs.
struct Running {
    change: String,
    /// Signals, and sizes of the terminal.
    control: Socket,
    stdio: Socket,
    /// None with a terminal.
    stderr: Option<Socket>,
}

impl Running {
    /// Begins a command.
    async fn begin(api: &Api<'_>, request: &ExecSessionRequest) -> Result<Self, ContainerError> {
        let mut body = json!({"command": request.command, "split-stderr": request.terminal.is_none()});
        if let (Some(terminal), Some(fields)) = (&request.terminal, body.as_object_mut()) {
            let TerminalSize { columns, rows } = terminal.size;
            fields.insert("terminal".to_owned(), true.into());
            fields.insert("interactive".to_owned(), true.into());
            fields.insert("width".to_owned(), columns.into());
            fields.insert("height".to_owned(), rows.into());
            if let Some(term) = &terminal.term {
                fields.insert("environment".to_owned(), json!({ "TERM": term }));
            }
        }
        let started: Answer<Started> = api.ask("POST", "/v1/exec", &body.to_string()).await?;
        let change = started.change.ok_or(ContainerError::Unknown)?;
        let task = started.result.task_id;
        let control = api.websocket(&task, "control").await?;
        let stdio = api.websocket(&task, "stdio").await?;
        let stderr = match request.terminal {
            Some(_) => None,
            None => Some(api.websocket(&task, "stderr").await?),
        };
        Ok(Self { change, control, stdio, stderr })
    }
}

/// Ends a command. A terminal's programs hear a hangup first, as when a terminal is closed.
async fn kill(control: &mut Socket) {
    let told = async {
        // The command may have ended.
        let _ = control.send(Message::text(HANGUP)).await;
        sleep(GRACE).await;
        let _ = control.send(Message::text(KILL)).await;
        let _ = control.close(None).await;
    };
    let _ = timeout(KILLED_WITHIN, told).await;
}

impl<C: Controller> Session<C> {
    /// Serves the session until its command or its operator ends it.
    async fn serve(self, order: ExecSessionOrder, streams: Option<PodStreams>, ends: CancellationToken) {
        let ExecSessionOrder { unit, request, .. } = order;
        // An earlier keeper may have begun it: its command is not run twice.
        if let Err(error) = self.hand_over(WorkloadLogPart::Begun, Bytes::new()).await {
            tracing::debug!(%unit, %error, "a session is not begun");
            return;
        }
        let last = match self.carry_out(&unit, &request, streams, &ends).await {
            Ok(code) => (WorkloadLogPart::End, code.to_string()),
            Err(reason) => (WorkloadLogPart::Failed, reason),
        };
        // An operator who has left needs no end.
        let _ = self.hand_over(last.0, last.1.into()).await;
    }

    /// Runs the command, and returns its exit code.
    async fn carry_out(
        &self,
        unit: &UnitName,
        request: &ExecSessionRequest,
        streams: Option<PodStreams>,
        ends: &CancellationToken,
    ) -> Result<i32, String> {
        let left = || "the session has ended".to_owned();
        let streams = streams.ok_or_else(|| format!("unit {unit} is not on this agent"))?;
        let target = WorkloadTarget::Pebble(request.container.clone());
        let way = PodWay { streams, unit: unit.clone(), target };
        let api = Api { way: &way };
        let begun = tokio::select! {
            begun = Running::begin(&api, request) => begun,
            // Pebble gives a command up whose websockets are not connected.
            () = ends.cancelled() => return Err(left()),
        };
        let Running { change, mut control, stdio, stderr } = begun.map_err(|error| error.to_string())?;
        let (input, stdout) = stdio.split();
        let ended = tokio::select! {
            ended = self.speak(&api, &change, stdout, stderr) => ended,
            reason = self.listen(&mut control, input) => Err(reason),
            () = ends.cancelled() => Err(left()),
        };
        if ended.is_err() {
            kill(&mut control).await;
        }
        ended
    }

    /// Hands the outputs over until they and the command have ended, and returns its exit code.
    async fn speak(
        &self,
        api: &Api<'_>,
        change: &str,
        stdout: SplitStream<Socket>,
        stderr: Option<Socket>,
    ) -> Result<i32, String> {
        let (lines, waiting) = mpsc::channel(WAITING);
        let outputs = async move {
            if lines.send(ExecSessionOutput::Running).await.is_err() {
                return Ok(true);
            }
            let errors = async {
                match stderr {
                    Some(stderr) => gather(stderr, &lines, ExecSessionOutput::Stderr).await,
                    None => true,
                }
            };
            let (stdout, stderr) = join(gather(stdout, &lines, ExecSessionOutput::Stdout), errors).await;
            Ok::<bool, String>(stdout && stderr)
        };
        let (is_whole, ()) = try_join(outputs, self.hand_lines_over(waiting)).await?;
        let Change { err, tasks } = api.wait(change).await.map_err(|error| error.to_string())?;
        let code = tasks.first().and_then(|task| task.data.exit_code);
        let code = code.ok_or_else(|| err.unwrap_or_else(|| ContainerError::Unknown.to_string()))?;
        match is_whole {
            true => Ok(code),
            false => Err("the end of the command's output is lost".to_owned()),
        }
    }

    /// Hands lines over, those that wait in one part as far as they fit.
    async fn hand_lines_over(&self, mut lines: mpsc::Receiver<ExecSessionOutput>) -> Result<(), String> {
        while let Some(line) = lines.recv().await {
            let mut part = BytesMut::new();
            add(&mut part, &line)?;
            while part.len() <= MAX_PART_BYTES - MAX_LINE
                && let Ok(line) = lines.try_recv()
            {
                add(&mut part, &line)?;
            }
            self.hand_over(WorkloadLogPart::Data, part.freeze()).await?;
        }
        Ok(())
    }

    /// Hands a part over, once there is room for it. An operator who takes nothing holds this call up, and with it the
    /// command, whose pipe is full; nothing else waits.
    async fn hand_over(&self, part: WorkloadLogPart, content: Bytes) -> Result<(), String> {
        hand_over(&self.controller, self.id, (part, content)).await.map_err(in_words)
    }

    /// Passes the operator's lines on to the command for as long as the session lasts. Returns the reason of its end.
    async fn listen(&self, control: &mut Socket, input: SplitSink<Socket, Message>) -> String {
        let mut command = Heard { control, input, is_ended: false };
        let mut lines = BytesMut::new();
        loop {
            match self.controller.exec_session_input(self.id).await {
                Ok(bytes) => lines.extend_from_slice(&bytes),
                Err(error) => return in_words(error),
            }
            while let Some(end) = lines.iter().position(|byte| *byte == b'\n') {
                let line = lines.split_to(end + 1);
                let passed = match serde_json::from_slice(&line) {
                    Ok(line) => self.patiently(command.pass(line)).await,
                    Err(error) => Err(format!("invalid line of input: {error}")),
                };
                if let Err(reason) = passed {
                    return reason;
                }
            }
            if lines.len() > MAX_INPUT_LINE_BYTES {
                return format!("a line of input is longer than {MAX_INPUT_LINE_BYTES} bytes");
            }
        }
    }

    /// Waits for the command to take its input, and asks the controller meanwhile whether the session lasts.
    async fn patiently(&self, passed: impl Future<Output = Result<(), String>>) -> Result<(), String> {
        let mut passed = pin!(passed);
        loop {
            match timeout(ALIVE_EVERY, &mut passed).await {
                Ok(passed) => return passed,
                Err(_) => self.hand_over(WorkloadLogPart::Data, Bytes::new()).await?,
            }
        }
    }
}

fn in_words(error: ControllerError) -> String {
    match error {
        ControllerError::Refused(refusal) => refusal.message,
        other => other.to_string(),
    }
}

/// The ways into a command.
struct Heard<'a> {
    control: &'a mut Socket,
    input: SplitSink<Socket, Message>,
    /// True once standard input has ended, or the command reads no more.
    is_ended: bool,
}

impl Heard<'_> {
    async fn pass(&mut self, line: ExecSessionInput) -> Result<(), String> {
        match line {
            ExecSessionInput::Stdin(_) | ExecSessionInput::End if self.is_ended => {}
            ExecSessionInput::Stdin(bytes) => {
                self.is_ended = self.input.send(Message::binary(bytes.into_bytes())).await.is_err();
            }
            ExecSessionInput::End => {
                self.is_ended = true;
                // A command that has ended needs no end of its input.
                let _ = self.input.send(Message::text(END)).await;
            }
            ExecSessionInput::Resize(TerminalSize { columns, rows }) => {
                let size = json!({"command": "resize", "resize": {"width": columns, "height": rows}});
                let _ = self.control.send(Message::text(size.to_string())).await;
            }
            ExecSessionInput::Begin(_) => return Err("a session begins one command".to_owned()),
        }
        Ok(())
    }
}

/// Takes an output to its end. Returns false if it breaks off before.
async fn gather(
    socket: impl Stream<Item = Result<Message, Error>>,
    lines: &mpsc::Sender<ExecSessionOutput>,
    line: impl Fn(ExecBytes) -> ExecSessionOutput,
) -> bool {
    let mut socket = pin!(socket);
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(bytes) => {
                for chunk in ExecBytes::split(&bytes) {
                    if lines.send(line(chunk)).await.is_err() {
                        return true;
                    }
                }
            }
            Message::Text(text) if text.as_str() == END => return true,
            _ => {}
        }
    }
    false
}

fn add(part: &mut BytesMut, line: &ExecSessionOutput) -> Result<(), String> {
    let line = serde_json::to_vec(line).map_err(|error| error.to_string())?;
    part.extend_from_slice(&line);
    part.extend_from_slice(b"\n");
    Ok(())
}

#[cfg(test)]
mod tests;
