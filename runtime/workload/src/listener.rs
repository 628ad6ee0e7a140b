//! The listening socket of a server, which its pod opens.

use std::{
    io,
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixListener},
    pin::Pin,
    task::{Context, Poll},
};

use rustix::net::{AddressFamily, sockopt::socket_domain};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port of the host.
    Tcp(tokio::net::TcpListener),
    /// A socket that only the pod reaches.
    Unix(tokio::net::UnixListener),
}

/// A connection of a client.
#[derive(Debug)]
pub(crate) enum Connection {
    /// By TCP.
    Tcp(TcpStream),
    /// Through the pod.
    Unix(UnixStream),
}

impl Listener {
    /// Takes a listening socket, within a runtime.
    ///
    /// # Errors
    /// The descriptor is no socket that listens.
    pub fn of(socket: OwnedFd) -> io::Result<Self> {
        match socket_domain(&socket)? {
            AddressFamily::UNIX => {
                let listener = UnixListener::from(socket);
                listener.set_nonblocking(true)?;
                Ok(Self::Unix(tokio::net::UnixListener::from_std(listener)?))
            }
            _ => {
                let listener = TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                Ok(Self::Tcp(tokio::net::TcpListener::from_std(listener)?))
            }
        }
    }

    /// Waits for the next connection. Cancellation loses none.
    pub(crate) async fn accept(&self) -> io::Result<Connection> {
        Ok(match self {
            Self::Tcp(listener) => Connection::Tcp(listener.accept().await?.0),
            Self::Unix(listener) => Connection::Unix(listener.accept().await?.0),
        })
    }
}

/// Calls a method of the stream that a connection is.
macro_rules! of_either {
    ($connection:expr, $stream:ident => $call:expr) => {
        match $connection.get_mut() {
            Connection::Tcp(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Connection::Unix(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        of_either!(self, stream => stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        of_either!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        of_either!(self, stream => stream.poll_shutdown(cx))
    }
}
