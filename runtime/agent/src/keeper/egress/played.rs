//! Hosts outside that a test plays: servers of the loopback stand for addresses that look public.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};

use super::{ControllerPlaces, EgressHost, EgressWay};
use crate::options::EgressOptions;

/// The longest time of a lookup that hangs: a test that has failed ends.
const HANGS_FOR: Duration = Duration::from_secs(60);

/// The name servers, interfaces and hosts of a played network.
#[derive(Default)]
pub(crate) struct PlayedWay {
    /// The addresses of each name.
    pub(crate) names: Mutex<BTreeMap<String, Vec<IpAddr>>>,
    /// The names that were looked up, in order.
    pub(crate) asked: Mutex<Vec<String>>,
    /// The addresses to which connections were made, in order.
    pub(crate) connected: Mutex<Vec<SocketAddr>>,
    /// True while lookups hang.
    pub(crate) hangs: AtomicBool,
    own: BTreeSet<IpAddr>,
    servers: Mutex<BTreeMap<SocketAddr, SocketAddr>>,
}

impl PlayedWay {
    /// Creates a network in which the agent's host has some addresses.
    pub(crate) fn of(own: &[&str]) -> Arc<Self> {
        let own = own.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self { own, ..Self::default() })
    }

    /// Gives a name addresses.
    pub(crate) fn name(&self, name: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        self.names.lock().insert(name.to_owned(), addresses);
    }

    /// Starts a server that stands for an address and a port.
    pub(crate) async fn server(&self, at: &str) -> TcpListener {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.servers.lock().insert(at.parse().unwrap(), listener.local_addr().unwrap());
        listener
    }

    /// Returns the connections of an agent whose controller has an address of this network.
    pub(crate) fn host(self: &Arc<Self>, options: EgressOptions, controllers: &[&str]) -> EgressHost {
        let places = ControllerPlaces::new(controllers.iter().map(ToString::to_string).collect(), None);
        EgressHost::new(options, Vec::new(), places, Arc::clone(self) as Arc<dyn EgressWay>)
    }
}

impl EgressWay for PlayedWay {
    fn look_up(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().push(name.to_owned());
        let begun = Instant::now();
        while self.hangs.load(Ordering::Relaxed) && begun.elapsed() < HANGS_FOR {
            std::thread::sleep(Duration::from_millis(5));
        }
        let unknown = || io::Error::other("no address is known");
        self.names.lock().get(name).cloned().ok_or_else(unknown)
    }

    fn own_addresses(&self) -> io::Result<BTreeSet<IpAddr>> {
        Ok(self.own.clone())
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<'static, io::Result<TcpStream>> {
        self.connected.lock().push(to);
        let server = self.servers.lock().get(&to).copied();
        async move {
            match server {
                Some(server) => TcpStream::connect(server).await,
                None => Err(io::ErrorKind::ConnectionRefused.into()),
            }
        }
        .boxed()
    }
}
