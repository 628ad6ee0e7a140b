//! The errors of calls.

use std::fmt;

use periapt_host_api::{Digest, Refusal};
use periapt_transport::HandshakeError;

use crate::AddressesError;

/// The reason for a call without an answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The controller refused the request, which had no effect but for the code `outcome-unknown`.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The controller did not answer.
    #[error("controller at {url} does not answer: {reason}; {outcome}")]
    Unreachable {
        /// The controller's URL.
        url: String,
        /// The cause, from the outermost error to the innermost.
        reason: String,
        /// The outcome of the request.
        outcome: RequestOutcome,
    },
    /// The TLS handshake with the server at the URL failed. The request was not sent.
    #[error("controller at {url} is not trusted: {reason}")]
    NotTrusted {
        /// The controller's URL.
        url: String,
        /// The reason.
        reason: HandshakeError,
    },
    /// No controller can be reached at any of several URLs. The request was not sent.
    #[error("none of {} controllers can be reached: {}", .0.len(), listed(.0))]
    NoneReached(Vec<Attempt>),
    /// The response does not conform to this API.
    #[error("controller at {url} sent an answer that this version cannot read: {reason}")]
    Protocol {
        /// The controller's URL.
        url: String,
        /// The fault of the response.
        reason: String,
    },
    /// The received content does not have its digest: it was damaged in the controller's store or in transit.
    #[error(
        "controller at {url} sent a {what} that is damaged: it has digest {got}, not {expected}; uploading the same \
         file again replaces it"
    )]
    Damaged {
        /// The controller's URL.
        url: String,
        /// The kind of content: `charm`, `resource`.
        what: &'static str,
        /// The requested digest.
        expected: Digest,
        /// The digest of the received content.
        got: Digest,
    },
    /// No controller can have this URL, or it cannot stand in this list.
    #[error("invalid controller URL {url:?}: {reason}")]
    InvalidUrl {
        /// The URL.
        url: String,
        /// The fault of the URL.
        reason: String,
    },
    /// Reading or writing a file of the caller failed.
    #[error("charm archive: {0}")]
    Local(String),
}

impl From<AddressesError> for ClientError {
    fn from(AddressesError { url, reason }: AddressesError) -> Self {
        Self::InvalidUrl { url, reason: reason.to_string() }
    }
}

impl ClientError {
    /// Returns the controller's refusal, if the error is one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Returns true if the same call may succeed later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::NoneReached(attempts) => attempts.iter().any(Attempt::is_temporary),
            Self::Refused(refusal) => refusal.code.is_temporary(),
            Self::NotTrusted { .. }
            | Self::Protocol { .. }
            | Self::Damaged { .. }
            | Self::InvalidUrl { .. }
            | Self::Local(_) => false,
        }
    }
}

/// An attempt to connect to one of several URLs, which failed.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The URL.
    pub url: String,
    /// The reason.
    pub reason: AttemptError,
}

/// The reason for a failed attempt to connect.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AttemptError {
    /// The TLS handshake with the server failed.
    #[error("not trusted: {0}")]
    NotTrusted(HandshakeError),
    /// No server answers.
    #[error("{}", shortened(.0))]
    NoAnswer(String),
}

/// The longest reason of one attempt in an error, in characters. An error that names many attempts stays readable.
const MAX_REASON: usize = 200;

impl Attempt {
    /// Returns true if another attempt may succeed by itself. The program that answers without TLS may be replaced by
    /// the controller; a wrong trust stays wrong.
    pub fn is_temporary(&self) -> bool {
        match &self.reason {
            AttemptError::NotTrusted(reason) => matches!(reason, HandshakeError::Protocol(_)),
            AttemptError::NoAnswer(_) => true,
        }
    }

    /// Returns the error of attempts that all failed: of one, the error about its URL alone.
    pub(crate) fn all_failed(mut attempts: Vec<Self>) -> ClientError {
        if attempts.len() != 1 {
            return ClientError::NoneReached(attempts);
        }
        match attempts.pop() {
            Some(Self { url, reason: AttemptError::NotTrusted(reason) }) => {
                ClientError::NotTrusted { url, reason }
            }
            Some(Self { url, reason: AttemptError::NoAnswer(reason) }) => {
                ClientError::Unreachable { url, reason, outcome: RequestOutcome::NothingHappened }
            }
            None => ClientError::NoneReached(Vec::new()),
        }
    }
}

/// Formats attempts, each with its URL.
fn listed(attempts: &[Attempt]) -> String {
    let each: Vec<_> = attempts.iter().map(|Attempt { url, reason }| format!("{url}: {reason}")).collect();
    each.join("; ")
}

fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}...", reason.get(..end).unwrap_or_default()),
        None => reason.to_owned(),
    }
}

/// The outcome of a request without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The request had no effect: it was not sent, or it only reads.
    NothingHappened,
    /// The connection broke after the request was sent, and no answer came in time; the controller may have carried it
    /// out.
    Unknown,
}

impl RequestOutcome {
    /// Returns the outcome of a request with this method that was sent and not answered.
    pub(crate) fn of(method: &http::Method) -> Self {
        if method.is_safe() { Self::NothingHappened } else { Self::Unknown }
    }
}

/// Formats a hint for people.
impl fmt::Display for RequestOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingHappened => "is it running?",
            Self::Unknown => "whether the request was carried out is not known",
        })
    }
}

/// Formats an error with its causes, from the outermost to the innermost, each once.
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
