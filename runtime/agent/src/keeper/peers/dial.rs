//! Connections that this agent opens to others.

use std::{io, sync::Arc, time::Duration};

use periapt_host_api::{
    AgentName,
    agent::{AgentPlace, MAX_ORDER_BYTES, PeerOrder},
    pod::OPENED,
};
use periapt_transport::AgentTlsStream;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
    time::timeout,
};

use super::Peers;

/// The most addresses of an agent that are tried.
const MAX_TRIED: usize = 4;

/// The time for a connection to one address, with its handshake.
const CONNECTS_WITHIN: Duration = Duration::from_secs(4);

/// The time for the other agent's answer: somewhat more than its unit's pods have to open a stream.
const ANSWERS_WITHIN: Duration = Duration::from_secs(12);

/// A connection to a unit on another host.
pub(crate) struct DialledStream {
    /// The connection.
    pub(crate) stream: AgentTlsStream<TcpStream>,
    _bound: OwnedSemaphorePermit,
}

/// An error of connecting to a unit on another host.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// There are too many connections already.
    #[error("this agent has too many connections to others")]
    TooMany,
    /// The other agent takes no connections.
    #[error("agent {0} takes no connections of other agents")]
    NotListening(AgentName),
    /// The other agent is not reached, or it is another one.
    #[error("agent {agent} cannot be reached: {source}")]
    Unreachable {
        /// The agent.
        agent: AgentName,
        /// The last error.
        source: io::Error,
    },
    /// The other agent refuses the connection.
    #[error("agent {0} refuses the connection")]
    Refused(AgentName),
}

impl DialError {
    /// Returns true if the agent may be reached in another way.
    pub(crate) fn is_of_the_way(&self) -> bool {
        matches!(self, Self::NotListening(_) | Self::Unreachable { .. })
    }
}

impl Peers {
    /// Connects to a unit by its agent.
    pub(crate) async fn dial(
        &self,
        agent: &AgentName,
        place: &AgentPlace,
        order: &PeerOrder,
    ) -> Result<DialledStream, DialError> {
        let permit = Arc::clone(&self.to_others).try_acquire_owned();
        let permit = permit.map_err(|_| DialError::TooMany)?;
        let unreachable = |source| DialError::Unreachable { agent: agent.clone(), source };
        let mut stream = self.reach(agent, place).await?;
        let answer = async {
            let order = serde_json::to_vec(order)?;
            let length = u16::try_from(order.len()).ok().filter(|_| order.len() <= MAX_ORDER_BYTES);
            stream.write_u16(length.ok_or(io::ErrorKind::InvalidInput)?).await?;
            stream.write_all(&order).await?;
            stream.flush().await?;
            stream.read_u8().await
        };
        match timeout(ANSWERS_WITHIN, answer).await.unwrap_or_else(|late| Err(late.into())) {
            Ok(OPENED) => Ok(DialledStream { stream, _bound: permit }),
            Ok(_) => Err(DialError::Refused(agent.clone())),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(DialError::Refused(agent.clone()))
            }
            Err(error) => Err(unreachable(error)),
        }
    }

    /// Connects to an agent at the first of its addresses at which it is.
    async fn reach(
        &self,
        agent: &AgentName,
        place: &AgentPlace,
    ) -> Result<AgentTlsStream<TcpStream>, DialError> {
        let port = place.port.ok_or_else(|| DialError::NotListening(agent.clone()))?;
        let mut last = io::Error::new(io::ErrorKind::AddrNotAvailable, "it has no address");
        for address in place.addresses.iter().take(MAX_TRIED) {
            let connected = async {
                let stream = TcpStream::connect((address.as_str(), port)).await?;
                stream.set_nodelay(true)?;
                self.tls.connect(stream, agent, place.key).await
            };
            match timeout(CONNECTS_WITHIN, connected).await.unwrap_or_else(|late| Err(late.into())) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(DialError::Unreachable { agent: agent.clone(), source: last })
    }
}
