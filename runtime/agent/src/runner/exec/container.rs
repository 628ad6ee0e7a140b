//! A command in a container of the unit, which Pebble runs as its API's `exec`.

mod pebble;

use std::{os::unix::net::UnixStream, pin::pin, time::Duration};

use futures_util::{
    FutureExt as _, SinkExt as _, Stream, StreamExt as _,
    future::{BoxFuture, Either, join, ready, select},
};
use periapt_hook::WorkloadTarget;
use periapt_sandbox::HookServices as _;
use serde_json::json;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};

use pebble::PebbleCommand;

pub(super) use crate::pebble_api::ContainerError;
use crate::{
    pebble_api::{Answer, Api, Change, PebbleWay, Socket, Started},
    runner::hook::Services,
};

/// The program that stands for the container's Pebble, whether the image has one or not.
const PEBBLE: &str = "pebble";

/// The most bytes that are kept of each output. A task's results keep fewer; what comes after is read and dropped, so
/// that the command goes on.
const MAX_OUTPUT: usize = 1 << 20;

/// The bytes of the input that are sent at once.
const PIECE: usize = 16 << 10;

/// The time in which a command is told to end.
const KILL_WITHIN: Duration = Duration::from_secs(2);

const END: &str = r#"{"command":"end"}"#;
const KILL: &str = r#"{"command":"signal","signal":{"name":"SIGKILL"}}"#;

/// The way that hooks have: the keeper opens each stream.
struct HookWay<'a> {
    target: &'a WorkloadTarget,
    services: &'a Services,
}

impl PebbleWay for HookWay<'_> {
    fn open(&self) -> BoxFuture<'_, Result<UnixStream, ContainerError>> {
        let opened = self.services.connect(self.target.clone());
        opened.map(|opened| opened.map_err(|error| ContainerError::Unreachable(error.to_string()))).boxed()
    }
}

/// A command in a container.
#[derive(Debug)]
pub(super) struct ContainerCommand {
    target: WorkloadTarget,
    words: Vec<String>,
    stdin: Vec<u8>,
    time: Duration,
    control: Option<Socket>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl ContainerCommand {
    /// Creates a command with its input, which may run for some time.
    pub(super) fn new(target: WorkloadTarget, words: Vec<String>, stdin: Vec<u8>, time: Duration) -> Self {
        Self { target, words, stdin, time, control: None, stdout: Vec::new(), stderr: Vec::new() }
    }

    /// Runs the command, and returns its exit code.
    pub(super) async fn run(&mut self, services: &Services) -> Result<i32, ContainerError> {
        match self.words.split_first() {
            Some((program, words)) if program == PEBBLE => {
                let answered = match PebbleCommand::parse(words) {
                    Ok(command) => {
                        let way = HookWay { target: &self.target, services };
                        command.carry_out(&Api { way: &way }).await
                    }
                    Err(usage) => Err(ContainerError::Refused(usage)),
                };
                let (code, output) = match answered {
                    Ok(shown) => (0, (&mut self.stdout, shown)),
                    Err(ContainerError::Refused(message)) => {
                        (1, (&mut self.stderr, format!("error: {message}\n")))
                    }
                    Err(error) => return Err(error),
                };
                output.0.extend_from_slice(output.1.as_bytes());
                Ok(code)
            }
            _ => self.execute(services).await,
        }
    }

    /// Runs a program of the container, which reads the input.
    async fn execute(&mut self, services: &Services) -> Result<i32, ContainerError> {
        let target = self.target.clone();
        let way = HookWay { target: &target, services };
        let api = Api { way: &way };
        let seconds = format!("{}s", self.time.as_secs().max(1));
        let body = json!({"command": self.words, "split-stderr": true, "timeout": seconds}).to_string();
        let started: Answer<Started> = api.ask("POST", "/v1/exec", &body).await?;
        let change = started.change.ok_or(ContainerError::Unknown)?;
        let task = started.result.task_id;
        self.control = Some(api.websocket(&task, "control").await?);
        let stdio = api.websocket(&task, "stdio").await?;
        let stderr = api.websocket(&task, "stderr").await?;
        carry((stdio, stderr), &self.stdin, (&mut self.stdout, &mut self.stderr)).await;
        let Change { err, tasks } = api.wait(&change).await?;
        let code = tasks.first().and_then(|task| task.data.exit_code);
        code.ok_or_else(|| err.map_or(ContainerError::Unknown, ContainerError::Refused))
    }

    /// Kills the command if it runs.
    pub(super) async fn kill(&mut self) {
        if let Some(mut control) = self.control.take() {
            let told = async {
                // The command may have ended.
                let _ = control.send(Message::text(KILL)).await;
                let _ = control.close(None).await;
            };
            let _ = timeout(KILL_WITHIN, told).await;
        }
    }

    /// Returns the output so far, standard error last.
    pub(super) fn into_output(self) -> (Vec<u8>, Vec<u8>) {
        (self.stdout, self.stderr)
    }
}

/// Gives a command its input, and reads its outputs to their ends. The sockets are closed then.
async fn carry(
    (stdio, stderr): (Socket, Socket),
    stdin: &[u8],
    (written, errors): (&mut Vec<u8>, &mut Vec<u8>),
) {
    let (mut input, stdout) = stdio.split();
    let give = async {
        for piece in stdin.chunks(PIECE) {
            if input.send(Message::binary(piece.to_vec())).await.is_err() {
                return;
            }
        }
        let _ = input.send(Message::text(END)).await;
    };
    let give = pin!(give);
    let outputs = pin!(join(gather(stdout, written), gather(stderr, errors)));
    // A command may end without having read its input.
    if let Either::Right((_, outputs)) = select(outputs, give).await {
        outputs.await;
    }
}

/// Reads an output to its end.
async fn gather(socket: impl Stream<Item = Result<Message, Error>>, output: &mut Vec<u8>) {
    let is_output = |message: &Message| !matches!(message, Message::Text(text) if text.as_str() == END);
    let messages = socket.take_while(|message| ready(message.as_ref().is_ok_and(is_output)));
    let mut messages = pin!(messages);
    while let Some(Ok(message)) = messages.next().await {
        if let Message::Binary(bytes) = message {
            let room = MAX_OUTPUT.saturating_sub(output.len()).min(bytes.len());
            output.extend_from_slice(bytes.get(..room).unwrap_or_default());
        }
    }
}
