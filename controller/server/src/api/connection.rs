//! The connection of a request: where it comes from, and the identity that it proves.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::atomic::{AtomicU64, Ordering},
};

use axum::extract::FromRequestParts;
use http::request::Parts;
use periapt_host_api::{ErrorCode, Refusal};
use periapt_transport::{AgentCertificate, ControllerCertificate};

use crate::api::failure::Failure;

/// A connection, which is added to each of its requests.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    /// The connection's own number, never used again.
    pub(crate) number: u64,
    /// The caller's address; none on the controller's socket.
    pub(crate) address: Option<SocketAddr>,
    /// The identity that the connection proves.
    pub(crate) identity: ConnectionIdentity,
}

/// The identity that a connection proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConnectionIdentity {
    /// A client in the controller's own process, such as a test. The controller believes the identity that it names.
    InProcess,
    /// A process of the controller's own user, or of root, on the controller's host.
    Socket,
    /// A client with the verified certificate of an agent, or without one.
    Tls(Option<AgentCertificate>),
    /// Another controller of the same log, with its verified certificate.
    Controller(ControllerCertificate),
}

impl Peer {
    /// Numbers a new connection.
    pub(crate) fn new(address: Option<SocketAddr>, identity: ConnectionIdentity) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { number: NEXT.fetch_add(1, Ordering::Relaxed), address, identity }
    }

    /// Returns the caller's IP address; that of the host itself for a caller on the controller's socket.
    pub(crate) fn ip(&self) -> IpAddr {
        self.address.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip())
    }

    /// Returns true if the connection shows the certificate of an agent.
    pub(crate) fn has_certificate(&self) -> bool {
        matches!(self.identity, ConnectionIdentity::Tls(Some(_)))
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Some(address) => write!(f, "{address}"),
            None => f.write_str("the controller's socket"),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let none = || Failure(Refusal::new(ErrorCode::Internal, "a request without a connection"));
        parts.extensions.get().cloned().ok_or_else(none)
    }
}
