//! Calls of workloads to other units of their model on this host: who is meant, whether it may be reached, and the
//! connection.

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr},
    os::unix::net::UnixStream as Started,
    sync::Arc,
};

use parking_lot::Mutex;
use periapt_hook::WorkloadTarget;
use periapt_host_api::{
    UnitName,
    connections::{ConnectionOrigin, ConnectionRefusal},
    pod::{OPENED, REFUSED},
    ports::Transport,
    view::FrameLine,
};
use tokio::{
    io::AsyncWriteExt as _,
    net::UnixStream,
    sync::{mpsc, watch},
    task::JoinSet,
};

use super::{
    pods::{PodDial, PodStreams},
    relay::relay,
};
use crate::metrics::metrics;

mod facts;

use facts::NeighbourFacts;

/// The calls that wait to be looked at. Further ones are refused.
pub(crate) const WAITING: usize = 64;

/// The most connections that one unit's workloads have to others, and the most that others have to one unit's. With those
/// of hosts outside, a pod's hooks still have room.
const MAX_CONNECTIONS: usize = 64;

/// The calls between one model's units on this host.
#[derive(Debug)]
pub(crate) struct Neighbours {
    streams: PodStreams,
    /// The addresses by which units are told of each other on this host.
    addresses: Vec<IpAddr>,
    facts: watch::Sender<NeighbourFacts>,
    /// The connections from and to each unit.
    connections: Arc<Mutex<BTreeMap<ConnectionEnd, usize>>>,
}

/// One side of connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ConnectionEnd {
    From(UnitName),
    To(UnitName),
}

/// A place among the connections of a unit, which is free again once it is dropped.
struct ConnectionPlace {
    connections: Arc<Mutex<BTreeMap<ConnectionEnd, usize>>>,
    end: ConnectionEnd,
}

/// The reason for refusing a call.
#[derive(Debug, thiserror::Error)]
enum CallRefused {
    #[error("it names no unit of the model on this host")]
    Unknown,
    #[error(transparent)]
    NotAdmitted(#[from] ConnectionRefusal),
    #[error("a unit has {MAX_CONNECTIONS} connections already")]
    TooMany,
    #[error("{0}")]
    Unanswered(String),
}

impl CallRefused {
    fn outcome(&self) -> &'static str {
        match self {
            Self::Unknown | Self::NotAdmitted(_) => "refused",
            Self::TooMany => "too-many",
            Self::Unanswered(_) => "unanswered",
        }
    }
}

/// A connection that was opened.
struct OpenedCall {
    target: UnitName,
    workload: UnixStream,
    _places: (ConnectionPlace, ConnectionPlace),
}

impl Neighbours {
    /// Creates the calls of a model without units.
    pub(crate) fn new(streams: PodStreams, addresses: Vec<IpAddr>) -> Self {
        Self { streams, addresses, facts: watch::Sender::default(), connections: Arc::default() }
    }

    /// Records the changes of a frame's line.
    pub(crate) fn observe(&self, line: &FrameLine) {
        self.facts.send_if_modified(|facts| facts.observe(line));
    }

    /// Connects calls, for as long as it runs.
    pub(crate) async fn run(self: Arc<Self>, mut dials: mpsc::Receiver<PodDial>) {
        let mut calls = JoinSet::new();
        loop {
            tokio::select! {
                dial = dials.recv() => match dial {
                    Some(dial) => {
                        let neighbours = Arc::clone(&self);
                        calls.spawn(async move {
                            let unit = dial.unit.clone();
                            if let Err(error) = neighbours.connect(dial).await {
                                tracing::debug!(%unit, %error, "a connection to another unit was cut off");
                            }
                        });
                    }
                    None => return,
                },
                Some(_) = calls.join_next() => {}
            }
        }
    }

    /// Answers a call, and serves its connection.
    async fn connect(&self, dial: PodDial) -> io::Result<()> {
        let PodDial { unit, order, stream } = dial;
        let stream = Started::from(stream);
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream)?;
        let mut opened = match self.open(&unit, &order.host, order.port).await {
            Ok(opened) => opened,
            Err(refused) => {
                metrics().calls.inc(&[refused.outcome()]);
                tracing::debug!(%unit, host = order.host, port = order.port, %refused, "a call was refused");
                return stream.write_all(&[REFUSED]).await;
            }
        };
        metrics().calls.inc(&["connected"]);
        stream.write_all(&[OPENED]).await?;
        let count = |direction: &'static str, bytes| metrics().connection_bytes.add(&[direction], bytes);
        let (received, sent) = (|bytes| count("received", bytes), |bytes| count("sent", bytes));
        let mut facts = self.facts.subscribe();
        let target = opened.target.clone();
        let barred = facts.wait_for(|facts| self.admit(facts, &unit, &target, order.port).is_err());
        tokio::select! {
            relayed = relay(&mut stream, &mut opened.workload, &received, &sent) => relayed,
            _ = barred => Err(io::Error::other("the units may not reach each other any more")),
        }
    }

    fn admit(
        &self,
        facts: &NeighbourFacts,
        asking: &UnitName,
        target: &UnitName,
        port: u16,
    ) -> Result<(), ConnectionRefusal> {
        let host = self.addresses.first().copied().unwrap_or(Ipv4Addr::LOCALHOST.into());
        let origin = ConnectionOrigin::of_unit(asking, host, target, facts.related());
        origin.admit(&facts.rules(target).unwrap_or_default(), Transport::Tcp, port)
    }

    /// Opens a connection to the first unit that is meant, may be reached and answers.
    async fn open(&self, asking: &UnitName, host: &str, port: u16) -> Result<OpenedCall, CallRefused> {
        let meant = self.facts.borrow().meant(asking, host, port, &self.addresses, &self.streams);
        let mut refused = CallRefused::Unknown;
        for target in meant {
            if let Err(refusal) = self.admit(&self.facts.borrow(), asking, &target, port) {
                refused = refusal.into();
                continue;
            }
            let ends = [ConnectionEnd::From(asking.clone()), ConnectionEnd::To(target.clone())];
            let [Some(from), Some(to)] = ends.map(|end| self.place(end)) else {
                return Err(CallRefused::TooMany);
            };
            match self.streams.open(&target, &WorkloadTarget::Port(port)).await.map(UnixStream::from_std) {
                Ok(Ok(workload)) => return Ok(OpenedCall { target, workload, _places: (from, to) }),
                Ok(Err(error)) => refused = CallRefused::Unanswered(error.to_string()),
                Err(reason) => refused = CallRefused::Unanswered(reason),
            }
        }
        Err(refused)
    }

    fn place(&self, end: ConnectionEnd) -> Option<ConnectionPlace> {
        let mut connections = self.connections.lock();
        let count = connections.entry(end.clone()).or_default();
        let is_free = *count < MAX_CONNECTIONS;
        *count += usize::from(is_free);
        drop(connections);
        is_free.then(|| ConnectionPlace { connections: Arc::clone(&self.connections), end })
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut connections = self.connections.lock();
        if let Some(count) = connections.get_mut(&self.end) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&self.end);
            }
        }
    }
}

#[cfg(test)]
mod tests;
