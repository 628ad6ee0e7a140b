//! The addresses and bounds that the listeners of all models on an agent share.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    net::TcpListener,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use crate::keeper::held::HeldListeners;

/// The most listening sockets of an agent.
const MAX_LISTENERS: usize = 1_024;

/// The most connections to all units of an agent. Each takes two descriptors and at most 32 KiB of buffers.
const MAX_CONNECTIONS: usize = 2_048;

/// The part of listeners that all models on an agent share.
#[derive(Debug)]
pub(crate) struct IngressHost {
    addresses: Vec<IpAddr>,
    /// The ports of controllers: a unit that took one while its controller restarts would keep it from coming back.
    reserved: BTreeSet<u16>,
    pub(super) connections: Arc<Semaphore>,
    listeners: Arc<Semaphore>,
    /// The unit that listens on each address, in words.
    holders: Mutex<BTreeMap<SocketAddr, String>>,
    /// The listeners of an earlier keeper, and the place where the next one finds those of this one.
    held: Arc<HeldListeners>,
}

/// A listening socket, with its place among those of the agent.
#[derive(Debug)]
pub(super) struct BoundListener {
    pub(super) socket: TcpListener,
    host: Arc<IngressHost>,
    address: SocketAddr,
    _place: OwnedSemaphorePermit,
}

impl IngressHost {
    /// Creates the shared part for listeners that end with their keeper.
    #[cfg(test)]
    pub(crate) fn new<'a>(
        addresses: impl IntoIterator<Item = IpAddr>,
        controllers: impl IntoIterator<Item = &'a str>,
    ) -> Arc<Self> {
        Self::holding(addresses, controllers, Arc::default())
    }

    /// Creates the shared part for listeners on some addresses of the host. `controllers` are controllers' addresses, such
    /// as `node-1.example:17070`.
    pub(crate) fn holding<'a>(
        addresses: impl IntoIterator<Item = IpAddr>,
        controllers: impl IntoIterator<Item = &'a str>,
        held: Arc<HeldListeners>,
    ) -> Arc<Self> {
        let port = |address: &str| address.rsplit_once(':')?.1.parse().ok();
        let addresses: BTreeSet<IpAddr> = addresses.into_iter().collect();
        Arc::new(Self {
            addresses: addresses.into_iter().collect(),
            reserved: controllers.into_iter().filter_map(port).collect(),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            listeners: Arc::new(Semaphore::new(MAX_LISTENERS)),
            holders: Mutex::default(),
            held,
        })
    }

    /// Records who listens on some addresses already, in words, for units that have their port open.
    pub(crate) fn hold(&self, addresses: impl IntoIterator<Item = SocketAddr>, holder: &str) {
        self.holders.lock().extend(addresses.into_iter().map(|address| (address, holder.to_owned())));
    }

    /// Returns the addresses on which the agent listens.
    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Listens on an address for a holder, or says in words why it cannot.
    pub(super) fn listen(
        self: &Arc<Self>,
        address: SocketAddr,
        holder: &dyn std::fmt::Display,
    ) -> Result<BoundListener, String> {
        if self.reserved.contains(&address.port()) {
            return Err("it is the port of a controller".to_owned());
        }
        let full = |_| format!("the agent listens on {MAX_LISTENERS} addresses already");
        let place = Arc::clone(&self.listeners).try_acquire_owned().map_err(full)?;
        let earlier = self.held.take(address).map(Ok);
        let socket = earlier.unwrap_or_else(|| std::net::TcpListener::bind(address)).and_then(|socket| {
            socket.set_nonblocking(true)?;
            TcpListener::from_std(socket)
        });
        match socket {
            Ok(socket) => {
                self.held.hold(address, &socket);
                self.holders.lock().insert(address, holder.to_string());
                Ok(BoundListener { socket, host: Arc::clone(self), address, _place: place })
            }
            Err(error) => Err(self.reason(&error, address)),
        }
    }

    fn reason(&self, error: &io::Error, address: SocketAddr) -> String {
        match error.kind() {
            io::ErrorKind::AddrInUse => match self.holders.lock().get(&address) {
                Some(holder) => format!("{holder} has the same port open"),
                None => "another process of the host listens there".to_owned(),
            },
            io::ErrorKind::AddrNotAvailable => {
                "it is no address of this host: name one by --listen-address".to_owned()
            }
            io::ErrorKind::PermissionDenied if address.port() < 1024 => {
                "ports below 1024 need the capability CAP_NET_BIND_SERVICE".to_owned()
            }
            _ => error.to_string(),
        }
    }
}

impl Drop for BoundListener {
    fn drop(&mut self) {
        self.host.holders.lock().remove(&self.address);
        self.host.held.release(self.address);
    }
}
