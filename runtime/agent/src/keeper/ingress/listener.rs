//! One listener: a port of a unit on one address of the host.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use periapt_client::Backoff;
use periapt_host_api::{connections::ConnectionOrigin, ports::Transport};
use tokio::{net::TcpStream, task::JoinSet, time::sleep};
use tokio_util::task::AbortOnDropHandle;

use super::{UnitWay, forward, host::BoundListener, host::IngressHost};
use crate::{
    keeper::{pods::WorkloadStates, relay::ResetOnDrop},
    metrics::{ListenerState, metrics},
};

/// The shortest and the longest pause before the next attempt to listen.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));

/// The pause after a connection could not be accepted, as when the process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listener before its start.
pub(super) struct Listener {
    pub(super) host: Arc<IngressHost>,
    pub(super) way: Arc<UnitWay>,
    /// The states of the unit's workloads, among which is a port that the agent cannot listen on.
    pub(super) states: Arc<WorkloadStates>,
    pub(super) address: SocketAddr,
}

impl Listener {
    /// Starts the listener. Its first attempt is made at once, so that of two units with the same port the same one gets
    /// it at each start of the agent. Dropping the handle closes the socket and resets all connections.
    pub(super) fn start(self) -> AbortOnDropHandle<()> {
        let first = self.listen();
        AbortOnDropHandle::new(tokio::spawn(self.run(first)))
    }

    fn listen(&self) -> Result<BoundListener, String> {
        let UnitWay { unit, model, .. } = &*self.way;
        self.host.listen(self.address, &format_args!("unit {unit} of model {model}"))
    }

    async fn run(self, first: Result<BoundListener, String>) {
        let mut state = ListenerState::default();
        let (unit, address) = (&self.way.unit, self.address);
        let mut pauses = Backoff::new(PAUSES.0, PAUSES.1);
        let mut told = None;
        let mut attempt = first;
        let bound = loop {
            match attempt {
                Ok(bound) => break bound,
                Err(reason) => {
                    state.failed();
                    // Each reason is told once: attempts go on for as long as the port is taken.
                    if told.as_ref() != Some(&reason) {
                        tracing::warn!(%unit, %address, reason, "the agent cannot listen for the unit, and tries again");
                        self.states.port(unit, address, Some(&reason));
                        told = Some(reason);
                    }
                    sleep(pauses.failed()).await;
                    attempt = self.listen();
                }
            }
        };
        state.listening();
        self.states.port(unit, address, None);
        tracing::info!(%unit, %address, "the agent listens for the unit");
        self.accept(&bound).await;
    }

    async fn accept(&self, bound: &BoundListener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = bound.socket.accept() => match accepted {
                    Ok((client, from)) => self.accepted(client, from, &mut connections),
                    Err(error) => {
                        tracing::debug!(address = %self.address, %error, "a connection was not accepted");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }

    /// Forwards a connection, or resets it if it is not admitted or if there are too many.
    fn accepted(&self, client: TcpStream, from: SocketAddr, connections: &mut JoinSet<()>) {
        let (way, port) = (&self.way, self.address.port());
        let admitted = ConnectionOrigin::Host(from.ip()).admit(&way.rules.borrow(), Transport::Tcp, port);
        if let Err(refusal) = admitted {
            metrics().connections.inc(&["refused"]);
            tracing::debug!(unit = %way.unit, %from, %refusal, "a connection was refused");
            drop(ResetOnDrop::new(client));
            return;
        }
        let of_unit = Arc::clone(&way.connections).try_acquire_owned();
        let of_agent = Arc::clone(&self.host.connections).try_acquire_owned();
        let (Ok(of_unit), Ok(of_agent)) = (of_unit, of_agent) else {
            metrics().connections.inc(&["too-many"]);
            tracing::debug!(unit = %way.unit, %from, "a connection was refused: there are too many");
            drop(ResetOnDrop::new(client));
            return;
        };
        way.traffic.connected();
        way.total.connected();
        let way = Arc::clone(way);
        connections.spawn(async move {
            forward::serve(&way, client, from.ip(), port).await;
            drop((of_unit, of_agent));
        });
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // What is not to be listened on is not taken.
        self.states.port(&self.way.unit, self.address, None);
    }
}
