//! Errors that a Pebble tells.

use std::fmt;

/// The error of a container's Pebble: [`Error::pebble`](crate::Error::pebble) returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PebbleError {
    /// The kind. Pebble's words are such as `not-found`, `permission-denied` and `generic-file-error` of files; `api` stands
    /// for errors without one. The SDK's own are `change-failed` (services or a command ended badly), `timeout`,
    /// `broken` (the answer broke off, or makes no sense) and `invalid` (the request was not sent).
    pub kind: String,
    /// The message.
    pub message: String,
    /// The status of the response, such as 400; 0 if the error is not that of a response.
    pub status: u16,
}

impl fmt::Display for PebbleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.status {
            0 => Ok(()),
            status => write!(f, " (status {status})"),
        }
    }
}
