//! The way to the ports of a pod's workloads.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, Ipv4Addr},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream as Started,
    },
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use periapt_helper::send_beside;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    time::sleep,
};

use crate::names::Names;

/// The byte beside a connection, which has no meaning.
const CONNECTION: u8 = b'c';

/// The pause before another try to hand a connection to a server that has many waiting. Callers bound the whole time.
const FULL_PAUSE: Duration = Duration::from_millis(20);

/// A stream to a port.
pub(crate) trait PortStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> PortStream for S {}

/// The network that a pod's ports are in.
#[derive(Debug, Clone)]
pub(crate) enum Network {
    /// The network of the pod's process, which is the host's.
    System(Names),
    /// The network of the pod's process, which is its container's. These ports of it are those of WebAssembly workloads of the
    /// unit: the container reaches them there, and the keeper asks their pods for them, not this one.
    Container(Arc<BTreeSet<u16>>),
    /// None: servers receive their connections from this pod alone.
    Private(PrivatePorts),
}

/// The ways to the servers of a pod that has no network, by their ports. Each is a socket to the server's process, on which
/// the pod sends one end of a new pair of sockets for each connection: neither side makes a socket that others could reach,
/// or connects to one.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrivatePorts(Arc<Mutex<BTreeMap<u16, Arc<Started>>>>);

impl Network {
    /// Connects to a port of the pod, for its keeper.
    pub(crate) async fn port(&self, port: u16) -> io::Result<Box<dyn PortStream>> {
        match self {
            // By the gate, the stream would come back to the keeper that asks for it.
            Self::Container(forwarded) if forwarded.contains(&port) => {
                Err(io::ErrorKind::ConnectionRefused.into())
            }
            Self::System(_) | Self::Container(_) => {
                Ok(Box::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?))
            }
            Self::Private(ports) => Ok(Box::new(ports.connect(port).await?)),
        }
    }

    /// Connects to a port of a host, for a check. The error is in words.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn PortStream>, String> {
        match self {
            Self::System(names) => Ok(Box::new(names.connect(host, port).await?)),
            Self::Container(_) => Ok(Box::new(Names::OfHosts.connect(host, port).await?)),
            Self::Private(_) if !is_own(host) => Err(format!(
                "a WebAssembly workload is checked on its own port, at localhost and not at {host:?}"
            )),
            Self::Private(_) => self.port(port).await.map_err(|error| error.to_string()),
        }
    }
}

/// Returns true for names and addresses of the pod itself.
pub(crate) fn is_own(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

impl PrivatePorts {
    /// Makes the socket on which the server of a port receives its connections. The one before receives no more.
    pub(crate) fn listen(&self, port: u16) -> io::Result<OwnedFd> {
        let (ours, theirs) = Started::pair()?;
        ours.set_nonblocking(true)?;
        self.servers().insert(port, Arc::new(ours));
        Ok(theirs.into())
    }

    /// Connects to the server of a port. While more connections wait than the kernel holds for it, this one waits.
    async fn connect(&self, port: u16) -> io::Result<UnixStream> {
        let server = self.servers().get(&port).cloned();
        // A port on which nobody has listened yet.
        let server = server.ok_or(io::ErrorKind::ConnectionRefused)?;
        let (ours, theirs) = Started::pair()?;
        ours.set_nonblocking(true)?;
        loop {
            match send_beside(&*server, &[CONNECTION], theirs.as_fd()) {
                Ok(_) => return UnixStream::from_std(ours),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(FULL_PAUSE).await,
                // The server has ended.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<Started>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use periapt_helper::receive_beside;
    use tokio::{io::AsyncReadExt as _, time::timeout};

    use super::*;

    #[tokio::test]
    async fn a_private_port_is_reached_by_the_pod_alone() {
        let ports = PrivatePorts::default();
        let network = Network::Private(ports.clone());
        let refused = network.port(8080).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let server = Started::from(ports.listen(8080).unwrap());
        for host in ["localhost", "127.0.0.1", "::1", "0.0.0.0"] {
            let mut client = network.connect(host, 8080).await.unwrap();
            let mut accepted = Started::from(receive_beside(&server).unwrap().unwrap());
            accepted.write_all(b"hello").unwrap();
            let mut heard = [0; 5];
            client.read_exact(&mut heard).await.unwrap();
            assert_eq!(&heard, b"hello");
        }
        for host in ["10.0.0.1", "example.org", ""] {
            let error = network.connect(host, 8080).await.err().unwrap();
            assert!(error.contains("on its own port"), "{error}");
        }
        // One that waits ends with the server.
        let mut waits = network.port(8080).await.unwrap();
        drop(server);
        assert_eq!(waits.read(&mut [0]).await.unwrap_or_default(), 0);
        assert_eq!(network.port(8080).await.err().unwrap().kind(), io::ErrorKind::ConnectionRefused);
        let next = ports.listen(8080).unwrap();
        network.port(8080).await.map(drop).unwrap();
        receive_beside(next).unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_container_reaches_a_forwarded_port_and_its_keeper_does_not() {
        let listeners = [(); 2].map(|()| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let [forwarded, own] = listeners.each_ref().map(|it| it.local_addr().unwrap().port());
        let network = Network::Container(Arc::new([forwarded].into()));
        network.port(own).await.map(drop).unwrap();
        let refused = network.port(forwarded).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        for port in [forwarded, own] {
            network.connect("127.0.0.1", port).await.map(drop).unwrap();
        }
    }

    #[tokio::test]
    async fn a_connection_waits_for_a_server_that_has_many_waiting() {
        let ports = PrivatePorts::default();
        let server = Started::from(ports.listen(80).unwrap());
        let full = Arc::clone(ports.servers().get(&80).unwrap());
        let mut waiting = 0;
        while (&*full).write_all(b"c").is_ok() {
            waiting += 1;
        }
        let mut connecting = Box::pin(ports.connect(80));
        timeout(FULL_PAUSE * 5, connecting.as_mut()).await.unwrap_err();
        for _ in 0..waiting {
            receive_beside(&server).unwrap_err();
        }
        timeout(Duration::from_secs(60), connecting).await.unwrap().unwrap();
        receive_beside(&server).unwrap().unwrap();
    }
}
