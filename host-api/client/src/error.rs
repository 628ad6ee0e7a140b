//! What can become of a call.

use std::fmt;

use periapt_host_api::{Digest, Refusal};

/// Why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The controller understood, and said no: nothing of what was asked happened.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// There was no answer.
    #[error("controller at {url} does not answer: {reason}; {outcome}")]
    Unreachable {
        /// The controller's URL.
        url: String,
        /// What went wrong, from the outside in.
        reason: String,
        /// What became of the request.
        outcome: Outcome,
    },
    /// What came back is no answer of this API.
    #[error("controller at {url} answered what this version does not understand: {reason}")]
    Protocol {
        /// The controller's URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What came is not what has this digest: it was damaged where the controller keeps it, or on its way.
    #[error(
        "controller at {url} sent a {what} that is damaged: it has digest {got}, not {expected}; uploading the same \
         file again replaces it"
    )]
    Damaged {
        /// The controller's URL.
        url: String,
        /// What was fetched: `charm`, `resource`.
        what: &'static str,
        /// The digest that was asked for.
        expected: Digest,
        /// That of what came.
        got: Digest,
    },
    /// The URL is none that a controller can have.
    #[error("invalid controller URL {url:?}: {reason}")]
    InvalidUrl {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of the caller's own could not be read or written.
    #[error("charm archive: {0}")]
    Local(String),
}

impl ClientError {
    /// The controller's refusal, if this is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether the same call may succeed later without anybody changing it.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(refusal) => refusal.code.is_temporary(),
            Self::Protocol { .. } | Self::Damaged { .. } | Self::InvalidUrl { .. } | Self::Local(_) => false,
        }
    }
}

/// What became of a request that has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It changed nothing: it was not sent, or asks for nothing but an answer.
    NothingHappened,
    /// It was on its way when the connection broke, and may have been carried out.
    Unknown,
}

impl Outcome {
    /// That of a request by its method, once it was sent.
    pub(crate) fn of(method: &http::Method) -> Self {
        if method.is_safe() { Self::NothingHappened } else { Self::Unknown }
    }
}

/// For people: what to think of.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingHappened => "is it running?",
            Self::Unknown => "whether the request was carried out is not known",
        })
    }
}

/// An error with all that caused it, from the outside in, each said once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
