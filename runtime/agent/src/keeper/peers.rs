//! The connections between this agent and others, for calls of units to units on other hosts. Both sides prove by their
//! certificates which agents they are. What a connection may reach is decided by the keeper of its model
//! ([`super::neighbours`]).

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use parking_lot::Mutex;
use periapt_host_api::{AgentName, ModelUuid, agent::PeerOrder};
use periapt_transport::{AgentCertificate, AgentTls, AgentTlsStream};
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};

use super::places::{Place, Places};

mod dial;
mod listener;
mod ways;

pub(crate) use dial::{DialError, DialledStream};
pub(crate) use listener::PeerListener;
pub(crate) use ways::{AskWays, PeerWays};

/// The most connections to other agents, and the most from them. Each holds at most 150 KiB of what is on its way.
const MAX_CONNECTIONS: usize = 512;

/// The most connections from one agent.
const MAX_OF_ONE_AGENT: usize = 128;

/// The most connections from one address that have not said yet what they want.
const MAX_BEGINNING: usize = 16;

/// The most connections from all addresses that have not said yet what they want. Further ones are closed at once.
const MAX_BEGINNING_OF_ALL: usize = 128;

/// The calls of one model that wait for its keeper. Further ones are refused.
const WAITING: usize = 64;

/// A call of a unit on another host, whose agent has proved which one it is.
pub(crate) struct PeerCall {
    /// The other agent.
    pub(crate) agent: AgentCertificate,
    /// The address from which it connects.
    pub(crate) from: IpAddr,
    /// Its order, of which nothing is checked.
    pub(crate) order: PeerOrder,
    /// The connection, on which the other agent waits for the answer. Dropping it refuses the call.
    pub(crate) stream: AgentTlsStream<TcpStream>,
    _bounds: (OwnedSemaphorePermit, Place<AgentName>),
}

/// The part of these connections that all models share.
#[derive(Debug)]
pub(crate) struct Peers {
    tls: AgentTls,
    models: Mutex<BTreeMap<ModelUuid, mpsc::Sender<PeerCall>>>,
    to_others: Arc<Semaphore>,
    from_others: Arc<Semaphore>,
    from_each: Places<AgentName>,
    beginning: Arc<Semaphore>,
    beginning_from: Places<IpAddr>,
}

/// The place of a connection that has not said yet what it wants.
struct Beginning(
    #[expect(dead_code, reason = "held until the connection has said it")]
    (OwnedSemaphorePermit, Place<IpAddr>),
);

impl Peers {
    /// Creates the connections of an agent, which has none yet.
    pub(crate) fn new(tls: AgentTls) -> Self {
        Self {
            tls,
            models: Mutex::default(),
            to_others: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            from_others: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            from_each: Places::new(MAX_OF_ONE_AGENT),
            beginning: Arc::new(Semaphore::new(MAX_BEGINNING_OF_ALL)),
            beginning_from: Places::new(MAX_BEGINNING),
        }
    }

    /// Returns the calls for one model from now on. The receiver before this one gets no more.
    pub(crate) fn calls_of(&self, model: ModelUuid) -> mpsc::Receiver<PeerCall> {
        let (sender, calls) = mpsc::channel(WAITING);
        let mut models = self.models.lock();
        models.retain(|_, calls| !calls.is_closed());
        models.insert(model, sender);
        calls
    }

    /// Admits a connection that has just begun, unless too many have.
    fn admit(&self, from: SocketAddr) -> Option<Beginning> {
        let place = self.beginning_from.take(from.ip().to_canonical())?;
        let permit = Arc::clone(&self.beginning).try_acquire_owned().ok()?;
        Some(Beginning((permit, place)))
    }

    /// Gives a call to the keeper of its model, unless there are too many.
    fn pass_on(
        &self,
        agent: AgentCertificate,
        from: SocketAddr,
        order: PeerOrder,
        stream: AgentTlsStream<TcpStream>,
    ) -> Result<(), &'static str> {
        let permit = Arc::clone(&self.from_others).try_acquire_owned();
        let permit = permit.map_err(|_| "this agent has too many connections of others")?;
        let place = self.from_each.take(agent.agent.clone());
        let place = place.ok_or("the agent has too many connections to this one")?;
        let calls = self.models.lock().get(&order.model).cloned();
        let calls = calls.ok_or("this agent has no units of the model")?;
        let from = from.ip().to_canonical();
        let call = PeerCall { agent, from, order, stream, _bounds: (permit, place) };
        calls.try_send(call).map_err(|_| "the keeper of the model takes no calls now")
    }
}

#[cfg(test)]
mod tests;
