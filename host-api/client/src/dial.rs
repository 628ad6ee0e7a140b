//! Opening the connection: a socket, and TLS on it.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use periapt_transport::{HandshakeError, MemoryCaller, SocketPath};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    address::{Address, bare},
    error::chain,
    peer::Peer,
};

/// The reason for a missing connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// No server listens at the address, or the system has no sockets left.
    #[error("{}", chain(.0))]
    Socket(#[from] io::Error),
    /// TLS could not be agreed on.
    #[error(transparent)]
    Tls(#[from] HandshakeError),
}

impl DialError {
    /// Returns true if another attempt may succeed by itself.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Socket(_) => true,
            // The program that listens there now may be replaced by the controller; a wrong trust stays wrong.
            Self::Tls(error) => matches!(error, HandshakeError::Protocol(_)),
        }
    }
}

/// A dialler of one address.
#[derive(Debug, Clone)]
pub(crate) struct Dialler {
    peer: Peer,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// The network in memory in which an address without TLS is; none: it is on this machine's.
    memory: Option<MemoryCaller>,
}

/// The reason that a controller cannot be dialled at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("https:// needs the certificate of the controller's authority")]
    Nobody,
    #[error("the certificate of its authority cannot be used: {0}")]
    Unusable(#[from] periapt_transport::CertificateError),
    #[error("its host is neither a DNS name nor an IP address")]
    Name,
}

impl Dialler {
    /// Prepares connections to an address, which use `tls` if the address does.
    pub(crate) fn new(
        address: Address,
        tls: Option<&Arc<ClientConfig>>,
        memory: Option<&MemoryCaller>,
    ) -> Result<Self, TrustError> {
        let tls = match &address {
            Address::Tls(authority) => {
                let name = ServerName::try_from(bare(authority.host()).to_owned());
                let name = name.map_err(|_| TrustError::Name)?;
                Some((Arc::clone(tls.ok_or(TrustError::Nobody)?), name))
            }
            Address::Unix(_) | Address::Plain(_) => None,
        };
        Ok(Self { peer: Peer::new(address), tls, memory: memory.cloned() })
    }

    /// Returns the controller at the address.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Opens a connection.
    pub(crate) async fn dial(&self) -> Result<Stream, DialError> {
        if let (Address::Plain(authority), Some(memory)) = (self.peer.address(), &self.memory) {
            let address = authority.as_str().parse().map_err(io::Error::other)?;
            return Ok(Stream::Memory(memory.connect(address).await?));
        }
        let stream = match self.peer.address() {
            Address::Unix(path) => {
                let place = SocketPath::open(path)?;
                return Ok(Stream::Unix(UnixStream::connect(place.path()).await?));
            }
            Address::Tls(authority) | Address::Plain(authority) => {
                TcpStream::connect(authority.as_str()).await?
            }
        };
        stream.set_nodelay(true)?;
        let Some((config, name)) = &self.tls else { return Ok(Stream::Plain(stream)) };
        let connector = TlsConnector::from(Arc::clone(config));
        match connector.connect(name.clone(), stream).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(error) => Err(match HandshakeError::of(&error) {
                Some(reason) => reason.into(),
                None => error.into(),
            }),
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
    Memory(DuplexStream),
}

/// Calls a method of the stream within.
macro_rules! within {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream.get_mut() {
            Stream::Plain($inner) => $call,
            Stream::Unix($inner) => $call,
            Stream::Tls($inner) => $call,
            Stream::Memory($inner) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        within!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        within!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        within!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        within!(self, stream => Pin::new(stream).poll_shutdown(context))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        within!(self, stream => Pin::new(stream).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Memory(stream) => stream.is_write_vectored(),
        }
    }
}
