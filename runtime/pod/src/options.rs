//! The settings of a pod.

use std::{io, net::SocketAddr, os::unix::net::UnixStream, path::PathBuf};

use crate::driver::DriverKind;

/// The settings of a pod.
#[derive(Debug)]
pub struct PodOptions {
    /// The path of the API's socket; none: no socket has a path.
    pub socket: Option<PathBuf>,
    /// The socket to the keeper that started the pod, which brings its streams. The pod ends with it.
    pub keeper: Option<UnixStream>,
    /// An address for the endpoints that are open to all, without a right to anything else.
    pub http: Option<SocketAddr>,
    /// The driver of processes.
    pub driver: DriverKind,
    /// True if the caller knows that a driver may isolate nothing.
    pub accepts_no_isolation: bool,
    /// The path of the authorities' certificates by which the pod knows servers of `https`, among the workload's files;
    /// none: the usual paths of systems.
    pub certificates: Option<String>,
}

/// A pod that cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum PodError {
    /// The driver isolates nothing, and the caller has not said that this is known.
    #[error(
        "the driver {0} isolates nothing: its processes can do all that this user can; it is for tests alone, and runs \
         only where that is said"
    )]
    NoIsolation(&'static str),
    /// Another process serves the socket.
    #[error("{0}: another process serves this socket")]
    Taken(PathBuf),
    /// An address that cannot be served.
    #[error("{of}: {source}")]
    Listen {
        /// The path or address.
        of: String,
        /// The reason.
        source: io::Error,
    },
    /// The container has ended under the pod.
    #[error("the container is lost: {0}")]
    Lost(String),
    /// The system refuses a part of the set-up.
    #[error("cannot set up the pod: {0}")]
    Setup(#[source] io::Error),
}
