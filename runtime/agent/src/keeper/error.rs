//! The reasons why an agent does not start, or ends.

use std::{io, net::SocketAddr};

use periapt_host_api::Refusal;

use super::{directories::DirectoryError, identity::IdentityError};

/// An error of running an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent's directory is unusable.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The agent cannot prove to its controller who it is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The engine cannot be set up on this host.
    #[error("the engine cannot be set up")]
    Engine(#[from] periapt_sandbox::SandboxError),
    /// The host's boot id or name cannot be read.
    #[error("cannot read {path}")]
    Host {
        /// The path of the file.
        path: &'static str,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// The address for metrics is not of this machine alone.
    #[error("metrics are served on a loopback address, such as 127.0.0.1:0, and not on {0}")]
    MetricsAddress(SocketAddr),
    /// The address for metrics cannot be listened on.
    #[error("cannot listen on {address} for metrics")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An address for other agents cannot be listened on.
    #[error("cannot listen on {address} for other agents")]
    Peers {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The sockets for other agents cannot be used.
    #[error("the sockets for other agents cannot be used")]
    PeerSockets(#[source] io::Error),
    /// The host cannot make containers, or not confine them.
    #[error("this host cannot run workloads in containers: {0}")]
    Containers(String),
    /// The controller refuses this agent.
    #[error("the controller refuses this agent")]
    Refused(#[source] Refusal),
}
