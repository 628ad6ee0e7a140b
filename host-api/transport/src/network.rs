//! A network in memory, for simulations: callers and addresses, and lines between them that a test slows down, silences
//! and cuts.

use std::{collections::BTreeMap, fmt, io, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split},
    sync::{Mutex as AsyncMutex, mpsc, watch},
    time::sleep,
};

/// The bytes that a connection holds on their way, in each direction.
const ON_THE_WAY: usize = 64 << 10;

/// The connections that wait to be accepted.
const BACKLOG: usize = 64;

/// A network in memory. Cloning is cheap, and clones are the same network.
#[derive(Clone, Default)]
pub struct MemoryNetwork {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    listeners: BTreeMap<SocketAddr, mpsc::Sender<DuplexStream>>,
    /// The state of each line that was used or set, by caller and address.
    lines: BTreeMap<(String, SocketAddr), watch::Sender<Line>>,
}

/// The state of the line from a caller to an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Line {
    /// Bytes arrive at once.
    #[default]
    Up,
    /// Bytes arrive late, both ways.
    Slow(Duration),
    /// The caller's bytes arrive. Those that come back are held.
    NoAnswers,
    /// Bytes are held, both ways, and nobody is told.
    Silent,
    /// Connections break, and none is made.
    Cut,
}

/// A caller's access to a network. Clones are the same caller.
#[derive(Clone)]
pub struct MemoryCaller {
    network: MemoryNetwork,
    name: String,
}

/// An address of a network in memory, before it is bound.
#[derive(Debug, Clone)]
pub struct MemoryAddress {
    /// The caller that listens here calls others by this access.
    pub caller: MemoryCaller,
    /// The address, which must be a loopback address.
    pub address: SocketAddr,
}

/// A bound address of a network in memory. It is free again once this is dropped.
pub struct MemoryListener {
    incoming: AsyncMutex<mpsc::Receiver<DuplexStream>>,
}

impl MemoryNetwork {
    /// Returns the access of the caller with this name.
    pub fn caller(&self, name: impl Into<String>) -> MemoryCaller {
        MemoryCaller { network: self.clone(), name: name.into() }
    }

    /// Sets the state of the line from a caller to an address.
    pub fn set(&self, caller: &str, address: SocketAddr, line: Line) {
        self.line(caller, address, |sender| {
            sender.send_replace(line);
        });
    }

    /// Does something with a line, which begins as [`Line::Up`].
    fn line<T>(&self, caller: &str, address: SocketAddr, act: impl FnOnce(&watch::Sender<Line>) -> T) -> T {
        let mut shared = self.shared.lock();
        act(shared.lines.entry((caller.to_owned(), address)).or_default())
    }
}

impl MemoryCaller {
    /// Listens on an address, in the place of a listener before.
    pub fn listen(&self, address: SocketAddr) -> MemoryListener {
        let (sender, incoming) = mpsc::channel(BACKLOG);
        self.network.shared.lock().listeners.insert(address, sender);
        MemoryListener { incoming: AsyncMutex::new(incoming) }
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// Nobody listens there, or the line is cut.
    pub async fn connect(&self, address: SocketAddr) -> io::Result<DuplexStream> {
        let mut line = self.network.line(&self.name, address, watch::Sender::subscribe);
        pass(&mut line, Direction::There).await?;
        let refused =
            || io::Error::new(io::ErrorKind::ConnectionRefused, format!("nobody listens on {address}"));
        let listener = self.network.shared.lock().listeners.get(&address).cloned().ok_or_else(refused)?;
        let ((caller, near), (far, accepted)) = (duplex(ON_THE_WAY), duplex(ON_THE_WAY));
        listener.send(accepted).await.map_err(|_| refused())?;
        tokio::spawn(carry(near, far, line));
        Ok(caller)
    }
}

impl fmt::Debug for MemoryCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MemoryCaller").field(&self.name).finish()
    }
}

impl MemoryListener {
    /// Waits for the next connection.
    ///
    /// # Errors
    /// Another listener has taken the address.
    pub async fn accept(&self) -> io::Result<DuplexStream> {
        let taken = || io::Error::new(io::ErrorKind::AddrInUse, "another listener has taken the address");
        self.incoming.lock().await.recv().await.ok_or_else(taken)
    }
}

#[derive(Clone, Copy)]
enum Direction {
    There,
    Back,
}

/// Carries the bytes of one connection, until it ends or its line is cut. Both ends then read the end of the other.
async fn carry(near: DuplexStream, far: DuplexStream, line: watch::Receiver<Line>) {
    let ((from_caller, to_caller), (from_listener, to_listener)) = (split(near), split(far));
    let there = flow(from_caller, to_listener, line.clone(), Direction::There);
    let back = flow(from_listener, to_caller, line.clone(), Direction::Back);
    let mut cut = line;
    tokio::select! {
        _ = cut.wait_for(|line| *line == Line::Cut) => {}
        // A connection of which one half has ended is of no use to HTTP.
        _ = there => {}
        _ = back => {}
    }
}

/// Carries bytes in one direction.
async fn flow(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<DuplexStream>,
    mut line: watch::Receiver<Line>,
    direction: Direction,
) -> io::Result<()> {
    let mut buffer = vec![0; ON_THE_WAY];
    loop {
        let count = from.read(&mut buffer).await?;
        pass(&mut line, direction).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..count).unwrap_or_default()).await?;
    }
}

/// Waits until the line lets something pass in this direction.
async fn pass(line: &mut watch::Receiver<Line>, direction: Direction) -> io::Result<()> {
    let broken = || io::Error::new(io::ErrorKind::ConnectionRefused, "the line is cut");
    loop {
        let now = *line.borrow_and_update();
        match (now, direction) {
            (Line::Up, _) | (Line::NoAnswers, Direction::There) => return Ok(()),
            (Line::Slow(delay), _) => {
                sleep(delay).await;
                return Ok(());
            }
            (Line::Cut, _) => return Err(broken()),
            (Line::Silent, _) | (Line::NoAnswers, Direction::Back) => {
                line.changed().await.map_err(|_| broken())?;
            }
        }
    }
}
