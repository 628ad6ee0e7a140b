//! The sockets on which an agent takes connections of others.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener as Bound},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::agent::{MAX_ORDER_BYTES, PeerOrder};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Beginning, Peers};

/// The port on which agents take connections of others, unless they are told another one.
pub(crate) const DEFAULT_PEER_PORT: u16 = 17_072;

/// The time for a connection to say what it wants, with its handshake.
const SAYS_WITHIN: Duration = Duration::from_secs(10);

/// The pause after a connection could not be accepted, as when the process has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The attempts to find one port that is free on each address.
const ATTEMPTS: usize = 8;

/// The listening sockets of an agent, one for each address, with one port.
#[derive(Debug)]
pub(crate) struct PeerListener {
    sockets: Vec<Bound>,
    port: u16,
}

impl PeerListener {
    /// Listens on some addresses. Without a port, it takes the usual one, or a free one if another process has that. Returns
    /// none if the host has none of the addresses.
    ///
    /// # Errors
    /// An address cannot be listened on.
    pub(crate) fn bind(
        addresses: &[IpAddr],
        port: Option<u16>,
    ) -> Result<Option<Self>, (SocketAddr, io::Error)> {
        let mut bound = bind(addresses, port.unwrap_or(DEFAULT_PEER_PORT));
        for attempt in 0..ATTEMPTS {
            match bound {
                Err((address, error))
                    if error.kind() == io::ErrorKind::AddrInUse && port.unwrap_or(0) == 0 =>
                {
                    if attempt == 0 {
                        tracing::info!(%address, "the port for other agents is taken: the agent takes a free one");
                    }
                    bound = bind(addresses, 0);
                }
                other => return other,
            }
        }
        bound
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the addresses.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok())
    }

    /// Takes connections for as long as it runs.
    ///
    /// # Errors
    /// The sockets cannot be used.
    pub(crate) fn serve(self, peers: &Arc<Peers>) -> io::Result<impl Future<Output = ()> + Send + 'static> {
        let mut listeners = JoinSet::new();
        for socket in self.sockets {
            socket.set_nonblocking(true)?;
            listeners.spawn(accept(TcpListener::from_std(socket)?, Arc::clone(peers)));
        }
        Ok(async move { while listeners.join_next().await.is_some() {} })
    }
}

fn bind(addresses: &[IpAddr], mut port: u16) -> Result<Option<PeerListener>, (SocketAddr, io::Error)> {
    let mut sockets = Vec::new();
    for address in addresses {
        let address = SocketAddr::new(*address, port);
        match Bound::bind(address) {
            Ok(socket) => {
                port = socket.local_addr().map_err(|error| (address, error))?.port();
                sockets.push(socket);
            }
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                tracing::warn!(%address, "units on other hosts are not taken at this address: it is none of this host");
            }
            Err(error) => return Err((address, error)),
        }
    }
    Ok((!sockets.is_empty()).then_some(PeerListener { sockets, port }))
}

async fn accept(listener: TcpListener, peers: Arc<Peers>) {
    let mut beginning = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => match peers.admit(from) {
                    Some(place) => {
                        beginning.spawn(begin(Arc::clone(&peers), stream, from, place));
                    }
                    None => tracing::debug!(%from, "too many connections have not said yet what they want"),
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection of another agent could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = beginning.join_next() => {}
        }
    }
}

/// Learns who connects and for what, and passes the connection on.
async fn begin(peers: Arc<Peers>, stream: TcpStream, from: SocketAddr, place: Beginning) {
    let said = async {
        stream.set_nodelay(true)?;
        let (mut stream, agent) = peers.tls.accept(stream).await?;
        let order = read_order(&mut stream).await?;
        Ok::<_, io::Error>((stream, agent, order))
    };
    let said = timeout(SAYS_WITHIN, said).await.unwrap_or_else(|late| Err(late.into()));
    drop(place);
    match said {
        Ok((stream, agent, order)) => {
            let name = agent.agent.clone();
            if let Err(reason) = peers.pass_on(agent, from, order, stream) {
                tracing::debug!(agent = %name, reason, "a call of another agent is refused");
            }
        }
        Err(error) => tracing::debug!(%from, %error, "a connection is none of another agent"),
    }
}

async fn read_order(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<PeerOrder> {
    let length = usize::from(stream.read_u16().await?);
    if length > MAX_ORDER_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "an order that is too long"));
    }
    let mut order = vec![0; length];
    stream.read_exact(&mut order).await?;
    Ok(serde_json::from_slice(&order)?)
}
