//! The controller at the other end of a connection, as errors name it.

use std::{fmt, sync::Arc};

use periapt_host_api::Digest;

use crate::{ClientError, RequestOutcome, address::Address};

/// The address of the controller that a request was sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer(Arc<Address>);

impl Peer {
    pub(crate) fn new(address: Address) -> Self {
        Self(Arc::new(address))
    }

    pub(crate) fn address(&self) -> &Address {
        &self.0
    }

    /// Returns the error for a missing answer.
    pub(crate) fn unreachable(&self, reason: impl Into<String>, outcome: RequestOutcome) -> ClientError {
        ClientError::Unreachable { url: self.to_string(), reason: reason.into(), outcome }
    }

    /// Returns the error for content with an unexpected digest.
    pub(crate) fn damaged(&self, what: &'static str, expected: Digest, got: Digest) -> ClientError {
        ClientError::Damaged { url: self.to_string(), what, expected, got }
    }

    /// Returns the error for an answer that does not conform to the API.
    pub(crate) fn protocol(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Protocol { url: self.to_string(), reason: reason.into() }
    }
}

/// Formats the controller's URL.
impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
