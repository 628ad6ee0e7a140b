//! The pod's own connections to others, such as those to log targets. They go the way that its workloads' connections go, and
//! lead nowhere else.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as Started},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::pod::{DialOrder, MAX_HOST_BYTES, NAME_ASKED};
use tokio::{net::UnixStream, sync::mpsc};

use crate::{
    calls::ask,
    network::{Network, PortStream, is_own},
};

/// The time for the keeper's answer: somewhat more than it gives itself.
const ANSWERS_WITHIN: Duration = Duration::from_secs(35);

/// The network in which a pod's workloads connect to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkloadNetwork {
    /// The host's, which is the pod's, too.
    OfHost,
    /// The container's, which is the pod's, too. It has the loopback alone; the keeper leads to all else.
    OfContainer,
    /// None at all. The keeper leads to everything, the pod's own ports included.
    Absent,
}

/// The way of the pod's own connections.
#[derive(Debug, Clone)]
pub(crate) enum Outward {
    /// By a network.
    Network(Network),
    /// By the keeper, which judges them as those of the unit's workloads.
    Keeper {
        /// The network of the container's own ports; without it, the keeper leads to these as well.
        own: Option<Network>,
        /// The socket for calls; none: there is no keeper, and nothing is reached.
        calls: Option<Arc<UnixStream>>,
    },
}

impl Outward {
    /// Creates the way. Calls to the keeper go by a socket of their own, which `sockets` takes.
    pub(crate) fn new(
        workloads: WorkloadNetwork,
        network: Network,
        sockets: Option<&mpsc::UnboundedSender<OwnedFd>>,
    ) -> io::Result<Self> {
        let own = match workloads {
            WorkloadNetwork::OfHost => return Ok(Self::Network(network)),
            WorkloadNetwork::OfContainer => Some(network),
            WorkloadNetwork::Absent => None,
        };
        let calls = sockets.map(call_socket).transpose()?;
        Ok(Self::Keeper { own, calls })
    }

    /// Connects to a port of a host. The error is in words.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn PortStream>, String> {
        match self {
            Self::Network(network) => network.connect(host, port).await,
            Self::Keeper { own: Some(network), .. } if is_own(host) => network.connect(host, port).await,
            Self::Keeper { calls: Some(calls), .. } => by_keeper(calls, host, port).await,
            Self::Keeper { calls: None, .. } => Err("this pod has no way to others".to_owned()),
        }
    }
}

/// Makes the socket on which the pod calls.
fn call_socket(sockets: &mpsc::UnboundedSender<OwnedFd>) -> io::Result<Arc<UnixStream>> {
    let (ours, theirs) = Started::pair()?;
    ours.set_nonblocking(true)?;
    // Without a receiver, nobody serves calls.
    let _ = sockets.send(theirs.into());
    Ok(Arc::new(UnixStream::from_std(ours)?))
}

async fn by_keeper(calls: &UnixStream, host: &str, port: u16) -> Result<Box<dyn PortStream>, String> {
    if host.len() > MAX_HOST_BYTES || port == NAME_ASKED {
        return Err("there is no such host or port".to_owned());
    }
    let order = DialOrder { host: host.to_owned(), port };
    match ask(&order, calls, ANSWERS_WITHIN).await {
        Ok(stream) => Ok(Box::new(stream)),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err("the unit may not reach it, or nobody answers there".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
