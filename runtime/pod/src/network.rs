//! The way to the ports of a pod's workloads.

use std::{
    fs::File,
    io,
    net::{IpAddr, Ipv4Addr},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{fs::OpenOptionsExt as _, net::UnixListener},
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
};

use crate::names::Names;

/// A stream to a port.
pub(crate) trait PortStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> PortStream for S {}

/// The network that a pod's ports are in.
#[derive(Debug, Clone)]
pub(crate) enum Network {
    /// The network of the pod's process.
    System(Names),
    /// None: each port is a socket that this pod alone reaches.
    Private(PortSockets),
}

/// Sockets in a directory of the pod's own, one for each port. The directory is used by its descriptor, as the path of
/// a socket may have 108 bytes alone.
#[derive(Debug, Clone)]
pub(crate) struct PortSockets(Arc<OwnedFd>);

impl Network {
    /// Connects to a port of the pod.
    pub(crate) async fn port(&self, port: u16) -> io::Result<Box<dyn PortStream>> {
        match self {
            Self::System(_) => Ok(Box::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?)),
            Self::Private(sockets) => Ok(Box::new(sockets.connect(port).await?)),
        }
    }

    /// Connects to a port of a host, for a check. The error is in words.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> Result<Box<dyn PortStream>, String> {
        match self {
            Self::System(names) => Ok(Box::new(names.connect(host, port).await?)),
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

impl PortSockets {
    /// Opens the directory.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        Ok(Self(Arc::new(File::options().read(true).custom_flags(flags).open(directory)?.into())))
    }

    fn path(&self, port: u16) -> PathBuf {
        format!("/proc/self/fd/{}/{port}", self.0.as_raw_fd()).into()
    }

    /// Listens on a port. The socket of a server that has ended is replaced.
    pub(crate) fn listen(&self, port: u16) -> io::Result<UnixListener> {
        let path = self.path(port);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        UnixListener::bind(path)
    }

    async fn connect(&self, port: u16) -> io::Result<UnixStream> {
        match UnixStream::connect(self.path(port)).await {
            // A port on which nobody has listened yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(io::ErrorKind::ConnectionRefused.into())
            }
            connected => connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_private_port_is_reached_by_the_pod_alone_wherever_its_directory_is() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("long".repeat(50));
        std::fs::create_dir(&directory).unwrap();
        let sockets = PortSockets::open(&directory).unwrap();
        let network = Network::Private(sockets.clone());
        let refused = network.port(8080).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let listener = sockets.listen(8080).unwrap();
        for host in ["localhost", "127.0.0.1", "::1", "0.0.0.0"] {
            network.connect(host, 8080).await.map(drop).unwrap();
            listener.accept().unwrap();
        }
        for host in ["10.0.0.1", "example.org", ""] {
            let error = network.connect(host, 8080).await.err().unwrap();
            assert!(error.contains("on its own port"), "{error}");
        }
        drop(listener);
        assert_eq!(network.port(8080).await.err().unwrap().kind(), io::ErrorKind::ConnectionRefused);
        sockets.listen(8080).unwrap();
    }
}
