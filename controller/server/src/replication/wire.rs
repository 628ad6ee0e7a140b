//! The form of commands that a following controller passes on to the one that leads. Controllers of different versions
//! may exchange them: a command that the other one does not know is refused.

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal, Revision,
    command::{Caller, Command},
    secret::{Sealed, SecretId},
    trace::TraceContext,
    user::TokenScope,
};
use periapt_model::{Input, Origin, Output, RequestedCommand};
use serde::{Deserialize, Serialize};

use crate::writer::{Answered, CommandAnswer, Job, QueueKey, Sender, Submitted};

/// Commands for the controller that leads in a term.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ForwardedCommands {
    /// The term.
    pub(crate) term: u64,
    /// The commands, in order.
    pub(crate) commands: Vec<ForwardedCommand>,
}

/// Commands as another controller passes them on.
#[derive(Debug)]
pub(crate) struct ReceivedCommands {
    /// The term in which this controller is to lead.
    pub(crate) term: u64,
    /// The commands, in order. One that this program does not know is refused in its place.
    pub(crate) commands: Vec<Result<ForwardedCommand, Refusal>>,
}

/// Commands that are parsed one by one.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct UnreadCommands {
    term: u64,
    commands: Vec<serde_json::Value>,
}

impl ReceivedCommands {
    /// Reads commands. `no_sense` tells why one cannot be read.
    ///
    /// # Errors
    /// They are no list of commands for a term.
    pub(crate) fn read(
        text: &[u8],
        no_sense: impl Fn(&serde_json::Error) -> Refusal,
    ) -> Result<Self, Refusal> {
        match serde_json::from_slice(text) {
            Ok(ForwardedCommands { term, commands }) => {
                Ok(Self { term, commands: commands.into_iter().map(Ok).collect() })
            }
            // Parsed one by one, to find those that cannot be read.
            Err(error) => {
                let unread: Result<UnreadCommands, _> = serde_json::from_slice(text);
                let UnreadCommands { term, commands } = unread.map_err(|_| no_sense(&error))?;
                let read = |command| serde_json::from_value(command).map_err(|error| no_sense(&error));
                Ok(Self { term, commands: commands.into_iter().map(read).collect() })
            }
        }
    }
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
    /// The id of a new secret, for which its content is sealed. No client may choose it, so the form of the command leaves it
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<SecretId>,
    /// The command as it is known when its request is sent again, to whichever controller.
    command: Option<RequestedCommand>,
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
    Done {
        output: Output,
        /// The sealed response of the request, if the command was carried out when its request was sent before.
        response: Option<Sealed>,
    },
    Refused(Refusal),
}

impl ForwardedCommand {
    pub(crate) fn of(job: &Job) -> Self {
        let Sender { caller, origin, scope } = job.sender.clone();
        let queue = match job.key {
            QueueKey::Controller => None,
            QueueKey::Model(model) => Some(model),
        };
        let (input, command) = (job.input.clone(), job.command.clone());
        let secret = match &input {
            Input::Model(_, Command::AddSecret { id, .. }) => *id,
            _ => None,
        };
        Self { queue, caller, origin, scope, input, secret, command, trace: job.pending.context() }
    }

    /// Returns the command's queue, its sender, and the command itself.
    pub(crate) fn into_parts(self) -> (QueueKey, Sender, Submitted) {
        let Self { queue, caller, origin, scope, mut input, secret, command, trace } = self;
        if let Input::Model(_, Command::AddSecret { id, .. }) = &mut input {
            *id = secret;
        }
        let key = queue.map_or(QueueKey::Controller, QueueKey::Model);
        (key, Sender { caller, origin, scope }, Submitted { input, cause: trace, command })
    }
}

impl From<CommandAnswer> for ForwardedAnswer {
    fn from(CommandAnswer { result, revision }: CommandAnswer) -> Self {
        let result = match result {
            Ok(Answered { output, response }) => ForwardedResult::Done { output, response },
            Err(refusal) => ForwardedResult::Refused(refusal),
        };
        Self { result, revision }
    }
}

impl From<ForwardedAnswer> for CommandAnswer {
    fn from(ForwardedAnswer { result, revision }: ForwardedAnswer) -> Self {
        let result = match result {
            ForwardedResult::Done { output, response } => Ok(Answered { output, response }),
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn no_sense(error: &serde_json::Error) -> Refusal {
        Refusal::bad_request(error.to_string())
    }

    fn read(text: &Value) -> Result<ReceivedCommands, Refusal> {
        ReceivedCommands::read(text.to_string().as_bytes(), no_sense)
    }

    #[test]
    fn a_command_that_this_program_does_not_know_is_refused_in_its_place() {
        let of = |input: Value| json!({ "caller": "worker", "input": input });
        let known = of(json!({ "backup": { "keys": false } }));
        let received = read(&json!({ "term": 7, "commands": [known, of(json!("fly")), known] })).unwrap();
        assert_eq!(received.term, 7);
        let [Ok(first), Err(refusal), Ok(_)] = received.commands.as_slice() else { panic!("{received:?}") };
        assert_eq!((&first.caller, &first.input), (&Caller::Worker, &Input::Backup { keys: false }));
        assert_eq!(refusal.code, ErrorCode::BadRequest);
        assert!(refusal.message.contains("unknown variant `fly`"), "{refusal}");
    }

    #[test]
    fn what_is_no_list_of_commands_is_refused_as_a_whole() {
        for text in [json!([]), json!({ "term": 7 }), json!({ "commands": [] }), json!("x")] {
            assert_eq!(read(&text).unwrap_err().code, ErrorCode::BadRequest, "{text}");
        }
    }
}
