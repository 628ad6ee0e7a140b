//! Calls of workloads to other units of their model, on this host and on others, and to hosts outside: who is meant,
//! whether it may be reached, and the connection.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use periapt_hook::WorkloadTarget;
use periapt_host_api::{
    AgentName, ModelUuid, UnitName,
    connections::{ConnectionOrigin, ConnectionRefusal},
    ports::Transport,
    view::FrameLine,
};
use tokio::{
    net::UnixStream,
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    egress::{EgressFailure, EgressHost},
    peers::{DialError, PeerWays, Peers},
    places::{Place, Places},
    pods::{PodDial, PodStreams},
};

mod facts;
mod incoming;
mod open_ports;
mod outgoing;

use facts::NeighbourFacts;

/// The calls that wait to be looked at. Further ones are refused.
pub(crate) const WAITING: usize = 64;

/// The most connections that one unit's workloads have to others, and the most that others have to one unit's. With those
/// of hosts outside, a pod's hooks still have room.
const MAX_CONNECTIONS: usize = 64;

/// The agent whose units call.
pub(crate) struct CallingAgent {
    /// Its name.
    pub(crate) name: AgentName,
    /// The addresses by which units are told of each other on this host.
    pub(crate) addresses: Vec<IpAddr>,
    /// The connections to other agents; none: units call those on this host alone.
    pub(crate) peers: Option<Arc<Peers>>,
    /// The connections to hosts outside; none: there are none.
    pub(crate) egress: Option<Arc<EgressHost>>,
}

/// The calls between one model's units of which one or both are on this host.
pub(crate) struct Neighbours {
    model: ModelUuid,
    agent: CallingAgent,
    streams: PodStreams,
    ways: PeerWays,
    facts: watch::Sender<NeighbourFacts>,
    /// The connections from and to each unit.
    connections: Places<ConnectionEnd>,
}

/// One side of connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionEnd {
    From(UnitName),
    To(UnitName),
}

/// The reason for refusing a call.
#[derive(Debug, thiserror::Error)]
enum CallRefused {
    #[error("it names no unit of the model that the unit may know of")]
    Unknown,
    #[error(transparent)]
    NotAdmitted(#[from] ConnectionRefusal),
    #[error("agent {0} does not run the unit that it speaks for, or is another agent now")]
    NotItsUnit(AgentName),
    #[error("a unit has {MAX_CONNECTIONS} connections already")]
    TooMany,
    #[error(transparent)]
    Elsewhere(#[from] DialError),
    #[error("it is no unit that the unit may know of, and as a host outside: {0}")]
    Outside(#[from] EgressFailure),
    #[error("{0}")]
    Unanswered(String),
}

impl CallRefused {
    fn outcome(&self) -> &'static str {
        match self {
            Self::Unknown
            | Self::NotAdmitted(_)
            | Self::NotItsUnit(_)
            | Self::Elsewhere(DialError::Refused(_))
            | Self::Outside(EgressFailure::Refused(_)) => "refused",
            Self::TooMany
            | Self::Elsewhere(DialError::TooMany)
            | Self::Outside(EgressFailure::TooMany(_)) => "too-many",
            Self::Unanswered(_) | Self::Elsewhere(_) | Self::Outside(EgressFailure::Unreachable(_)) => {
                "unanswered"
            }
        }
    }
}

/// A connection to a unit on this host.
struct OpenedCall {
    target: UnitName,
    workload: UnixStream,
    _place: Place<ConnectionEnd>,
}

impl Neighbours {
    /// Creates the calls of a model without units.
    pub(crate) fn new(model: ModelUuid, agent: CallingAgent, streams: PodStreams, ways: PeerWays) -> Self {
        let facts = watch::Sender::new(NeighbourFacts::new(agent.name.clone()));
        let connections = Places::new(MAX_CONNECTIONS);
        Self { model, agent, streams, ways, facts, connections }
    }

    /// Records the changes of a frame's line.
    pub(crate) fn observe(&self, line: &FrameLine) {
        self.facts.send_if_modified(|facts| facts.observe(line));
    }

    /// Connects calls, for as long as it runs.
    pub(crate) async fn run(self: Arc<Self>, mut dials: mpsc::Receiver<PodDial>) {
        let (mut calls, mut unheard) = (JoinSet::new(), mpsc::channel(1).1);
        let mut others = self.agent.peers.as_ref().map(|peers| peers.calls_of(self.model));
        loop {
            let from_others = others.as_mut().unwrap_or(&mut unheard);
            tokio::select! {
                dial = dials.recv() => match dial {
                    Some(dial) => drop(calls.spawn(Arc::clone(&self).call(dial))),
                    None => return,
                },
                Some(call) = from_others.recv() => drop(calls.spawn(Arc::clone(&self).answer(call))),
                Some(_) = calls.join_next() => {}
            }
        }
    }

    /// Returns the address of this host by which its units are judged.
    fn own_address(&self) -> IpAddr {
        self.agent.addresses.first().copied().unwrap_or(Ipv4Addr::LOCALHOST.into())
    }

    /// Returns the reason for refusing a connection of a unit on a host to a unit on this one.
    fn admit(
        facts: &NeighbourFacts,
        (asking, host): (&UnitName, IpAddr),
        target: &UnitName,
        port: u16,
    ) -> Result<(), ConnectionRefusal> {
        let origin = ConnectionOrigin::of_unit(asking, host, target, facts.related());
        origin.admit(&facts.rules(target).unwrap_or_default(), Transport::Tcp, port)
    }

    /// Opens a connection to the first of some units on this host that may be reached and answers.
    async fn open_here(
        &self,
        (asking, host): (&UnitName, IpAddr),
        targets: Vec<UnitName>,
        port: u16,
    ) -> Result<OpenedCall, CallRefused> {
        let mut refused = CallRefused::Unknown;
        for target in targets {
            if let Err(refusal) = Self::admit(&self.facts.borrow(), (asking, host), &target, port) {
                refused = refusal.into();
                continue;
            }
            let Some(place) = self.connections.take(ConnectionEnd::To(target.clone())) else {
                refused = CallRefused::TooMany;
                continue;
            };
            match self.streams.open(&target, &WorkloadTarget::Port(port)).await.map(UnixStream::from_std) {
                Ok(Ok(workload)) => return Ok(OpenedCall { target, workload, _place: place }),
                Ok(Err(error)) => refused = CallRefused::Unanswered(error.to_string()),
                Err(reason) => refused = CallRefused::Unanswered(reason),
            }
        }
        Err(refused)
    }
}

#[cfg(test)]
mod tests;
