//! The form of commands that a following controller passes on to the one that leads. Controllers of different versions
//! may exchange them: a command that the other one does not know is refused.

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal, Revision, command::Caller, trace::TraceContext, user::TokenScope,
};
use periapt_model::{Input, Origin, Output};
use serde::{Deserialize, Serialize};

use crate::writer::{CommandAnswer, Job, QueueKey, Sender};

/// Commands for the controller that leads in a term.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ForwardedCommands {
    /// The term.
    pub(crate) term: u64,
    /// The commands, in order.
    pub(crate) commands: Vec<ForwardedCommand>,
}

/// One command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ForwardedCommand {
    /// The model in whose queue it waits; none for the controller's own queue.
    queue: Option<ModelUuid>,
    caller: Caller,
    origin: Option<Origin>,
    scope: Option<TokenScope>,
    input: Input,
    trace: Option<TraceContext>,
}

/// The answers, in the order of the commands.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ForwardedAnswers {
    /// The answers.
    pub(crate) answers: Vec<ForwardedAnswer>,
}

/// The answer to one command.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ForwardedAnswer {
    result: ForwardedResult,
    revision: Revision,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ForwardedResult {
    Done(Output),
    Refused(Refusal),
}

impl ForwardedCommand {
    pub(crate) fn of(job: &Job) -> Self {
        let Sender { caller, origin, scope } = job.sender.clone();
        let queue = match job.key {
            QueueKey::Controller => None,
            QueueKey::Model(model) => Some(model),
        };
        Self { queue, caller, origin, scope, input: job.input.clone(), trace: job.pending.context() }
    }

    /// Returns the command's queue, sender, content and span.
    pub(crate) fn into_parts(self) -> (QueueKey, Sender, Input, Option<TraceContext>) {
        let Self { queue, caller, origin, scope, input, trace } = self;
        let key = queue.map_or(QueueKey::Controller, QueueKey::Model);
        (key, Sender { caller, origin, scope }, input, trace)
    }
}

impl From<CommandAnswer> for ForwardedAnswer {
    fn from(CommandAnswer { result, revision }: CommandAnswer) -> Self {
        let result = match result {
            Ok(output) => ForwardedResult::Done(output),
            Err(refusal) => ForwardedResult::Refused(refusal),
        };
        Self { result, revision }
    }
}

impl From<ForwardedAnswer> for CommandAnswer {
    fn from(ForwardedAnswer { result, revision }: ForwardedAnswer) -> Self {
        let result = match result {
            ForwardedResult::Done(output) => Ok(output),
            ForwardedResult::Refused(refusal) => Err(refusal),
        };
        Self { result, revision }
    }
}

impl ForwardedAnswer {
    /// Returns true if the command had no effect because of the other controller's role, so that it can be passed on
    /// again.
    pub(crate) fn asks_again(&self) -> bool {
        matches!(&self.result, ForwardedResult::Refused(refusal) if refusal.code == ErrorCode::TryAgain)
    }
}
