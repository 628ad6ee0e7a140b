//! The way to hosts outside: the system's resolver and sockets.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs as _},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::net::TcpStream;

use crate::keeper::interfaces;

/// The resolver, the interfaces and the sockets of a host.
pub(crate) trait EgressWay: Send + Sync {
    /// Looks up the addresses of a name. It blocks, for as long as the resolver wants.
    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Returns the addresses of the host's interfaces. It blocks for a moment.
    fn own_addresses(&self) -> io::Result<BTreeSet<IpAddr>>;

    /// Connects to an address.
    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<TcpStream>>;
}

/// The system's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemWay;

impl EgressWay for SystemWay {
    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
    }

    fn own_addresses(&self) -> io::Result<BTreeSet<IpAddr>> {
        interfaces::own_addresses()
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<TcpStream>> {
        TcpStream::connect(to).boxed()
    }
}
