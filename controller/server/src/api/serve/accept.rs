//! The listeners, and the connections that they accept.

use std::{io, net::SocketAddr, os::unix::fs::PermissionsExt as _, path::Path, sync::Arc};

use periapt_transport::{HandshakeError, MemoryListener, PeerCertificate, SocketPath};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::{
    api::connection::{ConnectionIdentity, Peer},
    bounds::{ConnectionPermit, Connections},
};

/// A listener, bound to its address.
pub(crate) enum Listener {
    /// Clients in the same process, without TLS.
    InProcess(TcpListener),
    /// Clients in a network in memory.
    Memory(MemoryListener, SocketAddr),
    /// Clients with TLS.
    Tls(TcpListener, TlsAcceptor),
    /// Processes on the same host.
    Socket(UnixListener),
}

/// An accepted connection, before its handshake.
pub(super) enum Accepted {
    InProcess(TcpStream, SocketAddr),
    Memory(DuplexStream, SocketAddr),
    Tls(TcpStream, SocketAddr, TlsAcceptor),
    Socket(UnixStream),
}

/// The stream of a connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// A network has all the connections that it may have.
#[derive(Debug)]
pub(super) struct NoPermit;

/// The reason why a connection was closed before its first request.
#[derive(Debug, thiserror::Error)]
pub(super) enum Rejected {
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    #[error(transparent)]
    Broken(#[from] io::Error),
    #[error("a process of user {0}, who is neither the controller's nor root")]
    OtherUser(u32),
    #[error("a certificate of the controller's authority that names neither an agent nor a controller")]
    NoAgent,
}

impl Listener {
    /// Prepares TLS on an address.
    pub(crate) fn tls(listener: TcpListener, config: Arc<ServerConfig>) -> Self {
        Self::Tls(listener, TlsAcceptor::from(config))
    }

    /// Binds a socket, in the place of one that an earlier controller left. The caller knows that no other controller
    /// uses the directory.
    pub(crate) fn socket(path: &Path) -> io::Result<Self> {
        let place = SocketPath::open(path)?;
        match std::fs::remove_file(place.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(place.path())?;
        // The controller also asks who connects: permissions alone would not hold from the first moment on.
        std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o600))?;
        Ok(Self::Socket(listener))
    }

    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        Ok(match self {
            Self::InProcess(listener) => {
                let (stream, address) = listener.accept().await?;
                Accepted::InProcess(stream, address)
            }
            Self::Memory(listener, address) => Accepted::Memory(listener.accept().await?, *address),
            Self::Tls(listener, acceptor) => {
                let (stream, address) = listener.accept().await?;
                Accepted::Tls(stream, address, acceptor.clone())
            }
            Self::Socket(listener) => Accepted::Socket(listener.accept().await?.0),
        })
    }
}

impl Accepted {
    /// Takes a permit of its network for a connection over TLS; other connections need none.
    ///
    /// # Errors
    /// The network has all its connections.
    pub(super) fn permit(&self, connections: &Connections) -> Result<Option<ConnectionPermit>, NoPermit> {
        match self {
            Self::Tls(_, address, _) => connections.take(address.ip()).map(Some).ok_or(NoPermit),
            Self::InProcess(..) | Self::Memory(..) | Self::Socket(_) => Ok(None),
        }
    }

    /// Finds out who connects.
    pub(super) async fn identify(self) -> Result<(Peer, Box<dyn Stream>), Rejected> {
        match self {
            Self::InProcess(stream, address) => {
                without_delay(&stream);
                Ok((Peer::new(Some(address), ConnectionIdentity::InProcess), Box::new(stream)))
            }
            Self::Memory(stream, address) => {
                Ok((Peer::new(Some(address), ConnectionIdentity::InProcess), Box::new(stream)))
            }
            Self::Tls(stream, address, acceptor) => {
                without_delay(&stream);
                let stream =
                    acceptor.accept(stream).await.map_err(|error| match HandshakeError::of(&error) {
                        Some(reason) => Rejected::Handshake(reason),
                        None => Rejected::Broken(error),
                    })?;
                let identity = identity_of(&stream)?;
                Ok((Peer::new(Some(address), identity), Box::new(stream)))
            }
            Self::Socket(stream) => {
                let user = stream.peer_cred()?.uid();
                if user != 0 && user != rustix::process::geteuid().as_raw() {
                    return Err(Rejected::OtherUser(user));
                }
                Ok((Peer::new(None, ConnectionIdentity::Socket), Box::new(stream)))
            }
        }
    }
}

/// Answers are small, and their callers wait for them.
fn without_delay(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
}

/// Returns the identity that the verified certificate of a client proves, if it showed one.
fn identity_of(stream: &TlsStream<TcpStream>) -> Result<ConnectionIdentity, Rejected> {
    let shown = stream.get_ref().1.peer_certificates().and_then(|certificates| certificates.first());
    let read = shown.map(|shown| PeerCertificate::read(shown)).transpose().map_err(|_| Rejected::NoAgent)?;
    Ok(match read {
        None => ConnectionIdentity::Tls(None),
        Some(PeerCertificate::Agent(agent)) => ConnectionIdentity::Tls(Some(agent)),
        Some(PeerCertificate::Controller(controller)) => ConnectionIdentity::Controller(controller),
    })
}
