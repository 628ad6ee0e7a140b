//! Errors with messages for `status`, and `?` from every error type.

use crate::{Failure, PebbleError, Refusal, Status};
use std::fmt::{self, Display};

/// The result of a handler.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// The reason that a hook stops.
///
/// Any [`std::error::Error`] converts to one by `?` and fails the hook: the hook has no effects, and the operator
/// reads the message in `status`. A [`Status`] converts, too, and ends the hook *successfully* with that status: `let
/// db = unit.relation("db").ok_or(Status::blocked("needs a database"))?`.
pub struct Error(Box<Kind>);

enum Kind {
    Failed(String),
    Refused { refusal: Refusal, context: Vec<String> },
    Pebble { error: PebbleError, context: Vec<String> },
    Stopped(Status),
    Unhandled,
}

/// The end of a handler, as [`handle`](crate::handle) reports it.
pub(crate) enum Ending {
    Unhandled,
    Stopped(Status),
    Failed(Failure),
}

impl Error {
    /// Creates an error with a message of the charm's own.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Kind::Failed(message.into())))
    }

    /// Returns the host's refusal, if the error is one, for charms that can go on without the call.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.0 {
            Kind::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// Returns true if the host refused the call because this unit does not lead.
    pub fn is_not_leader(&self) -> bool {
        matches!(self.refusal(), Some(Refusal::NotLeader(_)))
    }

    /// Returns the error of a container's Pebble, if the error is one.
    pub fn pebble(&self) -> Option<&PebbleError> {
        match &*self.0 {
            Kind::Pebble { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns the status with which the charm stopped, if it did.
    pub fn status(&self) -> Option<&Status> {
        match &*self.0 {
            Kind::Stopped(status) => Some(status),
            _ => None,
        }
    }

    pub(crate) fn unhandled() -> Self {
        Self(Box::new(Kind::Unhandled))
    }

    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self(Box::new(Kind::Refused { refusal, context: Vec::new() }))
    }

    pub(crate) fn of_pebble(error: PebbleError) -> Self {
        Self(Box::new(Kind::Pebble { error, context: Vec::new() }))
    }

    pub(crate) fn into_ending(self) -> Ending {
        let code = i32::from(matches!(self.refusal(), Some(Refusal::InvalidArgument(_)))) + 1;
        let message = self.to_string();
        match *self.0 {
            Kind::Unhandled => Ending::Unhandled,
            Kind::Stopped(status) => Ending::Stopped(status),
            Kind::Failed(_) | Kind::Refused { .. } | Kind::Pebble { .. } => {
                Ending::Failed(Failure { code, message })
            }
        }
    }

    fn within(mut self, what: impl Display) -> Self {
        match &mut *self.0 {
            Kind::Failed(message) => *message = format!("{what}: {message}"),
            Kind::Refused { context, .. } | Kind::Pebble { context, .. } => {
                context.insert(0, what.to_string())
            }
            Kind::Stopped(_) | Kind::Unhandled => {}
        }
        self
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Failed(message) => f.write_str(message),
            Kind::Refused { refusal, context } => {
                within(f, context)?;
                f.write_str(text(refusal))
            }
            Kind::Pebble { error, context } => {
                within(f, context)?;
                write!(f, "{error}")
            }
            Kind::Stopped(status) => write!(f, "{status}"),
            Kind::Unhandled => f.write_str("the charm has no handler for this event"),
        }
    }
}

/// Writes the operations that failed, from the outside in.
fn within(f: &mut fmt::Formatter<'_>, context: &[String]) -> fmt::Result {
    context.iter().try_for_each(|what| write!(f, "{what}: "))
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Display::fmt(self, f)
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::new(message)
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self(Box::new(Kind::Stopped(status)))
    }
}

/// Adds context to errors: the operation that failed.
pub trait Context<T> {
    /// Puts `what` before the error's own text.
    ///
    /// # Errors
    ///
    /// The same error with a longer text; for a `None`, `what` alone.
    fn context(self, what: impl Display) -> Result<T>;
}

impl<T, E: Into<Error>> Context<T> for std::result::Result<T, E> {
    fn context(self, what: impl Display) -> Result<T> {
        self.map_err(|error| error.into().within(what))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, what: impl Display) -> Result<T> {
        self.ok_or_else(|| Error::new(what.to_string()))
    }
}

/// Returns the host's message, which is Juju's.
fn text(refusal: &Refusal) -> &str {
    match refusal {
        Refusal::InvalidArgument(text)
        | Refusal::NotFound(text)
        | Refusal::PermissionDenied(text)
        | Refusal::NotLeader(text)
        | Refusal::Conflict(text)
        | Refusal::AlreadyExists(text)
        | Refusal::LimitExceeded(text)
        | Refusal::NotGranted(text)
        | Refusal::NotReady(text)
        | Refusal::TryAgain(text)
        | Refusal::WrongContext(text)
        | Refusal::NotSupported(text)
        | Refusal::Failed(text)
        | Refusal::Other((_, text)) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_reads_from_the_outside_in() {
        let refused = Err::<(), _>(Error::refused(Refusal::NotLeader("not the leader".to_owned())));
        let error = refused.context("writing db:1").context("announcing").unwrap_err();
        assert_eq!(error.to_string(), "announcing: writing db:1: not the leader");
        assert!(error.is_not_leader());
    }

    #[test]
    fn foreign_errors_keep_their_causes() {
        let error = Error::from("eighty".parse::<u16>().unwrap_err());
        assert_eq!(error.to_string(), "invalid digit found in string");
        let Ending::Failed(failure) = error.into_ending() else { panic!("a failure") };
        assert_eq!(failure.code, 1);
    }

    #[test]
    fn invalid_arguments_exit_with_two_as_a_tool_would() {
        let error = Error::refused(Refusal::InvalidArgument("no".to_owned()));
        let Ending::Failed(failure) = error.into_ending() else { panic!("a failure") };
        assert_eq!((failure.code, failure.message.as_str()), (2, "no"));
    }
}
