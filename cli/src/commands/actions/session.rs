//! A dialogue with a command in a container: standard input goes to it as it comes, and its output comes back, over one
//! request for as long as the command runs.

use std::future::pending;

use futures_util::StreamExt as _;
use periapt_client::{ExecSender, ExecSession, NdJson};
use periapt_host_api::{
    ContainerName, UnitName,
    exec_session::{
        ExecBytes, ExecSessionInput, ExecSessionOutput, ExecSessionRequest, ExecTerminal, MAX_CHUNK_BYTES,
        TerminalSize, is_term,
    },
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    context::Model,
    error::{Explain as _, Failure, Result},
    input::{self, RawTerminal},
    output::{PassedForm, PassedOutput, PassedStream},
    process::Interrupts,
};

/// The size of a terminal that tells none.
const USUAL_SIZE: TerminalSize = TerminalSize { columns: 80, rows: 24 };

/// The streams of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionStreams {
    /// A terminal, as this command's own.
    Terminal,
    /// Pipes, with standard error apart.
    Pipes,
}

/// A command to speak to.
#[derive(Debug)]
pub(super) struct SessionCommand {
    /// The unit.
    pub(super) unit: UnitName,
    /// Its container.
    pub(super) container: ContainerName,
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    /// The streams.
    pub(super) streams: SessionStreams,
}

impl SessionCommand {
    /// Runs the command, and passes its exit code on.
    ///
    /// # Errors
    /// There is no terminal to hand over, the command does not begin, its exit code is not 0, or the session breaks off.
    pub(super) async fn run(self, model: &Model) -> Result<()> {
        let form = match self.streams {
            SessionStreams::Terminal if !input::is_terminal() => {
                let text = "unable to use a terminal: standard input is not a terminal";
                return Err(Failure::new(text)
                    .with_hint("without --tty, --stdin passes standard input on, whatever it is"));
            }
            SessionStreams::Terminal => PassedForm::Terminal,
            SessionStreams::Pipes => PassedForm::Streams,
        };
        let mut interrupts = Interrupts::listen()?;
        let resized =
            signal(SignalKind::window_change()).explain(|| "cannot listen to signals".to_owned())?;
        let begun = tokio::select! {
            begun = self.begin(model) => begun?,
            signal = interrupts.next() => return Err(interrupted(signal)),
        };
        let ExecSession { input: sender, output } = begun;
        let raw = match self.streams {
            SessionStreams::Terminal => Some(RawTerminal::enter()?),
            SessionStreams::Pipes => None,
        };
        let passed = PassedOutput::start(form);
        let ended = tokio::select! {
            ended = show(output, &passed) => ended,
            failure = feed(&sender, raw.is_some().then_some(resized)) => Err(failure),
            signal = interrupts.next() => Err(interrupted(signal)),
        };
        // A reader that takes nothing does not keep a session that was interrupted.
        let written = match &ended {
            Err(Failure::Interrupted { .. }) => Ok(()),
            _ => tokio::select! {
                written = passed.finish() => written,
                signal = interrupts.next() => return Err(interrupted(signal)),
            },
        };
        drop(raw);
        match (ended, written) {
            (Err(Failure::OutputClosed), Err(error)) => Err(error.into()),
            (Ok(_), Err(error)) => Err(error.into()),
            (Ok(0), Ok(())) => Ok(()),
            // Exit codes have eight bits.
            (Ok(code), Ok(())) => Err(Failure::Exited(u8::try_from(code).unwrap_or(1))),
            (Err(failure), _) => Err(failure),
        }
    }

    async fn begin(&self, model: &Model) -> Result<ExecSession> {
        let terminal = match self.streams {
            SessionStreams::Pipes => None,
            SessionStreams::Terminal => Some(ExecTerminal {
                size: input::terminal_size().unwrap_or(USUAL_SIZE),
                term: std::env::var("TERM").ok().filter(|term| is_term(term)),
            }),
        };
        let (container, command) = (self.container.clone(), self.command.clone());
        let request = ExecSessionRequest { container, command, terminal };
        request.check()?;
        Ok(model.client().exec_session(&model.selector, &self.unit, request).await?)
    }
}

/// Returns the failure of a session that a signal ends. Its command hears of it when the connection closes.
fn interrupted(signal: u8) -> Failure {
    Failure::Interrupted { message: "interrupted: the command in the container is ended".to_owned(), signal }
}

/// Writes the output as it comes, and returns the exit code.
async fn show(mut output: NdJson<ExecSessionOutput>, passed: &PassedOutput) -> Result<i32> {
    const ENDED: &str = "the command in the container is ended";
    while let Some(line) = output.next().await {
        let (stream, bytes) = match line {
            Ok(ExecSessionOutput::Running) => continue,
            Ok(ExecSessionOutput::Stdout(bytes)) => (PassedStream::Stdout, bytes),
            Ok(ExecSessionOutput::Stderr(bytes)) => (PassedStream::Stderr, bytes),
            Ok(ExecSessionOutput::Exit(code)) => return Ok(code),
            Ok(ExecSessionOutput::Failed(reason)) => {
                return Err(Failure::new(format!("the session has broken off: {reason}")));
            }
            Err(error) => return Err(Failure::new(format!("the session has broken off: {error}; {ENDED}"))),
        };
        if !passed.write(stream, bytes.into_bytes()).await {
            return Err(Failure::OutputClosed);
        }
    }
    Err(Failure::new(format!("the controller has ended the session without an exit code; {ENDED}")))
}

/// Sends standard input and the terminal's changes of size for as long as the session lasts. Returns a failure to read.
async fn feed(sender: &ExecSender, mut resized: Option<Signal>) -> Failure {
    let mut pieces = Some(input::pieces(MAX_CHUNK_BYTES));
    loop {
        let piece = async {
            match &mut pieces {
                Some(pieces) => pieces.recv().await,
                None => pending().await,
            }
        };
        let resize = async {
            match &mut resized {
                Some(resized) => resized.recv().await,
                None => pending().await,
            }
        };
        let line = tokio::select! {
            piece = piece => match piece {
                Some(Ok(bytes)) => ExecBytes::new(bytes).ok().map(ExecSessionInput::Stdin),
                Some(Err(error)) => return Failure::new(format!("cannot read standard input: {error}")),
                None => {
                    pieces = None;
                    Some(ExecSessionInput::End)
                }
            },
            _ = resize => input::terminal_size().map(ExecSessionInput::Resize),
        };
        if let Some(line) = line
            && !sender.send(&line).await
        {
            // The output tells how the session has ended.
            pending::<()>().await;
        }
    }
}
