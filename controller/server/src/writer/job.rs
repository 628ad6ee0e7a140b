//! A command on its way through the writer, and its answer.

use periapt_host_api::{Refusal, Revision, trace::TraceContext};
use periapt_model::{Input, Output};
use periapt_telemetry::{
    context::{self, Variant},
    spans::{COMMAND, number},
};
use tokio::{sync::oneshot, time::Instant};
use tracing::{Span, field::Empty};

use crate::{metrics::metrics, writer::sender::Sender};

/// A command that waits for the writer.
pub(crate) struct Job {
    /// The caller, and the origin of a user's request.
    pub(crate) sender: Sender,
    /// The command.
    pub(crate) input: Input,
    /// The place for its answer.
    pub(crate) pending: Pending,
}

/// The answer that a caller waits for.
pub(crate) struct Pending {
    /// The caller may have gone.
    answer: oneshot::Sender<CommandAnswer>,
    since: Instant,
    /// The command's span, from the queue to the answer.
    span: Span,
}

/// The result of one command, once it is durable.
#[derive(Debug)]
pub(crate) struct CommandAnswer {
    /// Its output, or the reason why it did nothing.
    pub(crate) result: Result<Output, Refusal>,
    /// The revision at which this can be read.
    pub(crate) revision: Revision,
}

/// The end of a command.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// The model took or refused it.
    Evaluated,
    /// The store did not write it.
    Failed,
}

impl Job {
    /// Makes a command's job. Its span is a child of `cause`, or else of the span in which this is called.
    pub(crate) fn new(
        sender: Sender,
        input: Input,
        cause: Option<&TraceContext>,
    ) -> (Self, oneshot::Receiver<CommandAnswer>) {
        let (answer, receiver) = oneshot::channel();
        let span = periapt_telemetry::span!(
            COMMAND,
            command = %Variant(command_of(&input)),
            outcome = Empty,
            revision = Empty
        );
        if let Some(cause) = cause
            && !span.is_disabled()
        {
            // The request that carries it stays known.
            let request = context::of(&Span::current());
            context::continue_from(&span, Some(cause));
            request.iter().for_each(|request| context::link(&span, request));
        }
        let pending = Pending { answer, since: Instant::now(), span };
        (Self { sender, input, pending }, receiver)
    }
}

impl Pending {
    /// Answers the command.
    pub(super) fn answer(self, answered: CommandAnswer, outcome: Outcome) {
        let outcome = match (outcome, &answered.result) {
            (Outcome::Failed, _) => "failed",
            (Outcome::Evaluated, Ok(_)) => "done",
            (Outcome::Evaluated, Err(_)) => "refused",
        };
        metrics().commands.took(&[outcome], self.since.elapsed());
        self.span.record("outcome", outcome).record("revision", number(answered.revision.0));
        // The caller may have gone; the state says what the command did.
        let _ = self.answer.send(answered);
    }

    /// Returns the command's place in its trace; none if it is not recorded.
    pub(super) fn context(&self) -> Option<TraceContext> {
        context::of(&self.span)
    }

    /// Returns the command's span.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }
}

/// Returns the value whose variant names the command.
fn command_of(input: &Input) -> &dyn std::fmt::Debug {
    match input {
        Input::Controller(command) => command,
        Input::Model(_, command) => command,
        Input::Identity(command) => command,
        Input::Runner(_, command) => command,
        Input::Worker(command) => command,
        Input::UploadCharm(_)
        | Input::UploadResource(_)
        | Input::Register(..)
        | Input::Refused(_)
        | Input::Join { .. } => input,
    }
}
