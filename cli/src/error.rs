//! The failures of commands.

use std::{fmt, io};

use periapt_client::{Attempt, AttemptError, ClientError, HandshakeError, RequestOutcome};
use periapt_host_api::{ErrorCode, NameError, command::Answer};

use crate::{output::one_line, program::spelled};

/// The exit code of an invalid command line: Juju's, and the parser's own.
pub(crate) const MISUSE: u8 = 2;

/// The exit code of an agent that its controller does not know any more, and of a controller that was removed from those of
/// its log. Another start would end in the same way, so the units for systemd make none (`packaging/systemd`).
pub(crate) const REMOVED: u8 = 3;

/// The result of a command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// The reason why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command failed, or was refused.
    Failed {
        /// The cause and its place, without a full stop.
        message: String,
        /// The advice.
        hint: Option<String>,
    },
    /// A signal ended the command.
    Interrupted {
        /// The interrupted work, and its state.
        message: String,
        /// The signal's number.
        signal: u8,
    },
    /// The controller does not know the agent any more, or was removed itself.
    Removed(String),
    /// A service of a pod, or a check, has ended the pod with this exit code.
    PodEnded(u8),
    /// The pod could not begin, and its keeper was told the reason: another word of it would be the same error twice.
    PodNotBegun,
    /// A command in a container has ended with this exit code. It has said itself what there is to say.
    Exited(u8),
    /// The command line is invalid, though each of its options is valid.
    Misused(String),
    /// The reader of the output has closed it (`periapt status | head`), so no message is needed.
    OutputClosed,
}

impl Failure {
    /// Creates a failure without a hint.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), hint: None }
    }

    /// Creates a failure for options that exclude each other.
    pub(crate) fn misused(message: impl Into<String>) -> Self {
        Self::Misused(message.into())
    }

    /// Creates a failure for an answer that does not belong to the command.
    pub(crate) fn unexpected(answer: &Answer) -> Self {
        Self::new(format!("unexpected answer from the controller: {answer:?}"))
            .with_hint("client and controller may be of different versions: `periapt controllers` shows them")
    }

    /// Adds a hint.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Failed { message, .. } => Self::Failed { message, hint: Some(hint.into()) },
            Self::Interrupted { message, signal } => {
                Self::Interrupted { message: format!("{message}\nhint: {}", hint.into()), signal }
            }
            other => other,
        }
    }

    /// Returns the exit code of a process that ends with this failure.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Failed { .. } | Self::PodNotBegun => 1,
            Self::Removed(_) => REMOVED,
            Self::PodEnded(code) | Self::Exited(code) => *code,
            Self::Misused(_) => MISUSE,
            // The exit code that shells give a process ended by the signal.
            Self::Interrupted { signal, .. } => signal.saturating_add(128),
            Self::OutputClosed => 0,
        }
    }

    /// Adds the failure of a clean-up, if it failed, too.
    pub(crate) fn and_undoing(self, undone: Result<()>) -> Self {
        match (self, undone) {
            (Self::Failed { message, hint }, Err(Self::Failed { message: then, .. })) => {
                Self::Failed { message: format!("{message}; and then: {then}"), hint }
            }
            (Self::Interrupted { message, signal }, Err(Self::Failed { message: then, .. })) => {
                Self::Interrupted { message: format!("{message}; and then: {then}"), signal }
            }
            (failure, _) => failure,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed { message, hint: None } | Self::Removed(message) | Self::Misused(message) => {
                f.write_str(&spelled(message))
            }
            Self::Failed { message, hint: Some(hint) } => {
                write!(f, "{}\nhint: {}", spelled(message), spelled(hint))
            }
            Self::Interrupted { message, .. } => f.write_str(&spelled(message)),
            Self::PodEnded(code) => write!(f, "a service or a check ended the pod with exit code {code}"),
            Self::PodNotBegun => f.write_str("the pod could not begin"),
            Self::Exited(code) => write!(f, "the command ended with exit code {code}"),
            Self::OutputClosed => f.write_str("the output was closed"),
        }
    }
}

/// The advice about a controller that another authority than the known one has certified.
const OTHER_AUTHORITY: &str = "nothing was sent to it; if its operator has made a new authority, ask the operator for its \
                               certificate";

/// The advice about a request that was sent again with its id until the client gave up, and whose outcome no controller
/// told. The request's id ends with the command that sent it.
const OUTCOME_UNKNOWN: &str = "it was carried out whole, or not at all, and no controller has told in time which of the \
                               two; once `periapt controllers` shows the controller as available, look whether it \
                               happened (`periapt status`) before you run the command again: that is a new request";

fn is_of_another_authority(attempt: &Attempt) -> bool {
    matches!(attempt.reason, AttemptError::NotTrusted(HandshakeError::OtherAuthority))
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let hint = match &error {
            ClientError::NoneReached(attempts) if attempts.iter().all(is_of_another_authority) => {
                Some(OTHER_AUTHORITY)
            }
            ClientError::Unreachable { outcome: RequestOutcome::Unknown, .. } => Some(OUTCOME_UNKNOWN),
            ClientError::Unreachable { .. } | ClientError::NoneReached(_) => Some(
                "`periapt controllers` lists the controllers and whether they answer; one that was \
                 bootstrapped on this machine is started again by `periapt controller start`",
            ),
            ClientError::Protocol { .. } => {
                Some("client and controller may be of different versions: `periapt controllers` shows them")
            }
            ClientError::Damaged { .. } => {
                Some("deploy, refresh or attach the same file again: the controller replaces what is damaged")
            }
            ClientError::Refused(refusal) => hint_of(refusal.code),
            ClientError::NotTrusted { reason: HandshakeError::OtherAuthority, .. } => Some(OTHER_AUTHORITY),
            ClientError::NotTrusted { .. } | ClientError::InvalidUrl { .. } | ClientError::Local(_) => None,
        };
        let message = match &error {
            ClientError::Refused(refusal) => match &refusal.subject {
                // The subject appears once, in the message or before it.
                Some(subject) if !names(&refusal.message, subject) => {
                    format!("{}: {}", one_line(subject), refusal.message)
                }
                _ => refusal.message.clone(),
            },
            other => other.to_string(),
        };
        Self::Failed { message, hint: hint.map(str::to_owned) }
    }
}

impl From<periapt_host_api::Refusal> for Failure {
    fn from(refusal: periapt_host_api::Refusal) -> Self {
        ClientError::Refused(refusal).into()
    }
}

/// Returns true if a message names a subject, such as `unit mysql/0`, with or without quotes around
/// the name.
fn names(message: &str, subject: &str) -> bool {
    message.replace('"', "").contains(&subject.replace('"', ""))
}

/// Returns the hint for a kind of refusal. The message has the details.
fn hint_of(code: ErrorCode) -> Option<&'static str> {
    match code {
        ErrorCode::NotLoggedIn => Some("`periapt login` opens a new session"),
        ErrorCode::TooManyRequests | ErrorCode::TryAgain | ErrorCode::Migrating => {
            Some("try again in a moment")
        }
        ErrorCode::StorageUnavailable => {
            Some("the controller cannot write its store: `periapt status` says how it is")
        }
        ErrorCode::OutcomeUnknown => Some(OUTCOME_UNKNOWN),
        ErrorCode::Internal => Some(
            "this is a defect of the controller, or its host does not let it work: the message and its log say which",
        ),
        _ => None,
    }
}

impl From<NameError> for Failure {
    fn from(error: NameError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<crate::parse::ParseError> for Failure {
    fn from(error: crate::parse::ParseError) -> Self {
        Self::new(error.to_string())
    }
}

/// Converts errors of standard output, the one I/O whose errors need no context.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::new(format!("cannot write the output: {error}")),
        }
    }
}

/// Adds the failed action to an error.
pub(crate) trait Explain<T> {
    /// Converts the error to a failure `WHAT: ERROR`.
    fn explain(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> Explain<T> for Result<T, E> {
    fn explain(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(format!("{}: {error}", what())))
    }
}

/// Converts an error with its causes, the outermost first, to one line.
pub(crate) fn with_source(error: impl std::error::Error) -> Failure {
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Some errors include their cause.
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        source = cause.source();
    }
    Failure::new(message)
}

#[cfg(test)]
mod tests {
    use periapt_host_api::Refusal;

    use super::*;

    #[test]
    fn a_refusal_names_its_subject_once() {
        let refusal = Refusal::not_found("no such unit").about("unit mysql/7");
        assert_eq!(Failure::from(refusal).to_string(), "unit mysql/7: no such unit");
        let refusal = Refusal::not_found("unit mysql/7 does not exist").about("unit mysql/7");
        assert_eq!(Failure::from(refusal).to_string(), "unit mysql/7 does not exist");
        let refusal = Refusal::not_found("application \"shop\" not found").about("application shop");
        assert_eq!(Failure::from(refusal).to_string(), "application \"shop\" not found");
    }

    #[test]
    fn a_controller_that_is_down_is_told_with_the_way_on() {
        let error = ClientError::Unreachable {
            url: "http://127.0.0.1:1".into(),
            reason: "connection refused".into(),
            outcome: RequestOutcome::NothingHappened,
        };
        let text = Failure::from(error).to_string();
        assert!(text.starts_with("controller at http://127.0.0.1:1 does not answer"), "{text}");
        assert!(text.contains("periapt controller start"), "{text}");
    }

    #[test]
    fn a_request_of_unknown_outcome_is_told_with_what_to_look_at_first() {
        let deposed =
            "the controller does not lead any more; whether the request was carried out is not known";
        let refused = ClientError::Refused(Refusal::new(ErrorCode::OutcomeUnknown, deposed));
        let silent = ClientError::Unreachable {
            url: "https://a:1".into(),
            reason: "no answer in time".into(),
            outcome: RequestOutcome::Unknown,
        };
        for error in [refused, silent] {
            let message = error.to_string();
            let text = Failure::from(error).to_string();
            let (said, hint) = text.split_once("\nhint: ").unwrap();
            assert_eq!(said, message);
            assert!(hint.contains("look whether it happened (`periapt status`) before"), "{hint}");
            assert!(!hint.contains("cannot write its store"), "{hint}");
        }
        let full = Refusal::new(ErrorCode::StorageUnavailable, "no space left; the request had no effect");
        let text = Failure::from(full).to_string();
        assert!(text.ends_with("cannot write its store: `periapt status` says how it is"), "{text}");
    }

    #[test]
    fn what_went_wrong_first_is_told_first_and_keeps_its_hint() {
        let first = || Failure::new("the controller did not start").with_hint("look into its log");
        let text =
            first().and_undoing(Err(Failure::new("cannot remove x").with_hint("remove it"))).to_string();
        assert_eq!(text, "the controller did not start; and then: cannot remove x\nhint: look into its log");
        assert_eq!(first().and_undoing(Ok(())).to_string(), first().to_string());
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure_to_talk_about() {
        assert!(matches!(Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)), Failure::OutputClosed));
    }
}
