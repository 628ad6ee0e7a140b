//! The socket of a server, which its pod opens.

use std::{
    future::pending,
    io,
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixStream as Started},
    pin::Pin,
    task::{Context, Poll},
};

use periapt_helper::receive_beside;
use rustix::net::{AddressFamily, sockopt::socket_domain};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::{TcpStream, UnixStream},
};

/// A socket of a server.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port of the host.
    Tcp(tokio::net::TcpListener),
    /// A socket to the pod, on which it sends each connection.
    Pod(UnixStream),
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
    /// Takes the socket, within a runtime.
    ///
    /// # Errors
    /// The descriptor is no socket.
    pub fn of(socket: OwnedFd) -> io::Result<Self> {
        match socket_domain(&socket)? {
            AddressFamily::UNIX => {
                let socket = Started::from(socket);
                socket.set_nonblocking(true)?;
                Ok(Self::Pod(UnixStream::from_std(socket)?))
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
            Self::Pod(socket) => {
                let received = socket.async_io(Interest::READABLE, || receive_beside(socket)).await?;
                let Some(connection) = received else {
                    // The pod hands its connections to another process of the workload, or ends, and this one with it.
                    return pending().await;
                };
                let connection = Started::from(connection);
                connection.set_nonblocking(true)?;
                Connection::Unix(UnixStream::from_std(connection)?)
            }
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

#[cfg(test)]
mod tests {
    use std::{io::Read as _, os::fd::AsFd as _, time::Duration};

    use periapt_helper::send_beside;
    use tokio::{io::AsyncWriteExt as _, time::timeout};

    use super::*;

    #[tokio::test]
    async fn a_server_receives_its_connections_from_its_pod() {
        let (pod, socket) = Started::pair().unwrap();
        let listener = Listener::of(socket.into()).unwrap();
        for _ in 0..2 {
            let (mut client, connection) = Started::pair().unwrap();
            assert_eq!(send_beside(&pod, b"c", connection.as_fd()).unwrap(), 1);
            drop(connection);
            let mut accepted = listener.accept().await.unwrap();
            accepted.write_all(b"hello").await.unwrap();
            drop(accepted);
            let mut heard = String::new();
            client.read_to_string(&mut heard).unwrap();
            assert_eq!(heard, "hello");
        }
        // One without a pod serves those that it has, and waits for its end.
        drop(pod);
        timeout(Duration::from_millis(50), listener.accept()).await.unwrap_err();
    }
}
