//! The failures of an object store, in words.

use std::error::Error as _;

use super::connect::NoAnswer;

/// The most bytes of another failure's text.
const MAX_TEXT: usize = 400;

/// The reason why an object store did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum S3Failure {
    /// There is no connection, or no answer.
    #[error("the object store does not answer: {0}")]
    NoAnswer(String),
    /// The server's certificate is not trusted, or there is no TLS.
    #[error("no trusted connection to the object store: {0}")]
    Untrusted(String),
    /// There is no such bucket.
    #[error("there is no such bucket: make it first, or name another")]
    NoBucket,
    /// The credentials are not those of a user, or have ended.
    #[error("the object store refuses the credentials ({0})")]
    Credentials(String),
    /// The user may not do this.
    #[error("the user of the credentials may not list, read, write and delete objects there")]
    Denied,
    /// The clocks differ by more than the protocol allows.
    #[error("this host's clock or the object store's is wrong: they differ by more than the store allows")]
    Clock,
    /// A newly written object has other bytes.
    #[error("an object that was written a moment ago is read back with other bytes")]
    ReadBack,
    /// Another failure, as the store tells it.
    #[error("{0}")]
    Other(String),
}

impl S3Failure {
    /// Returns the failure that an error of the library tells.
    pub(crate) fn of(error: &object_store::Error) -> Self {
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(found) = inner.downcast_ref::<NoAnswer>() {
                return match found {
                    NoAnswer::Tls(reason) => Self::Untrusted(reason.clone()),
                    other => Self::NoAnswer(other.to_string()),
                };
            }
            cause = inner.source();
        }
        let text = error.to_string();
        match code(&text) {
            Some("NoSuchBucket") => Self::NoBucket,
            Some("RequestTimeTooSkewed") => Self::Clock,
            Some(
                code @ ("InvalidAccessKeyId"
                | "SignatureDoesNotMatch"
                | "ExpiredToken"
                | "InvalidToken"
                | "TokenRefreshRequired"
                | "AuthorizationHeaderMalformed"),
            ) => Self::Credentials(code.to_owned()),
            Some("AccessDenied" | "AllAccessDisabled") => Self::Denied,
            _ => match error {
                object_store::Error::PermissionDenied { .. } => Self::Denied,
                object_store::Error::Unauthenticated { .. } => Self::Credentials("no code".to_owned()),
                _ => Self::Other(shortened(&text)),
            },
        }
    }
}

/// Returns the code in an answer: `<Code>NoSuchBucket</Code>`.
fn code(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("<Code>")?;
    Some(rest.split_once("</Code>")?.0)
}

/// Returns the beginning of a text, in one line and without control characters.
fn shortened(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut short: String = plain.take(MAX_TEXT).collect();
    if text.chars().nth(MAX_TEXT).is_some() {
        short += "...";
    }
    short
}
