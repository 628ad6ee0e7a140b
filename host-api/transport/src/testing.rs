//! Ports for servers that tests start as processes of their own.

use std::{
    io,
    net::{Ipv4Addr, TcpListener},
};

use ring::rand::{SecureRandom as _, SystemRandom};

/// The first port that needs no privilege, with room for those of well-known services.
const FIRST: u16 = 10_000;

/// The number of ports from the first one. They end below 32768, where the system takes the local ports of connections
/// from: a connection of another test never has the port of a server that starts, or of one that is down for a while.
const COUNT: u16 = 22_000;

/// Returns ports that nobody listens on, at any address of this host.
///
/// # Errors
/// Fails if the system has no random numbers, or refuses sockets.
pub fn free_ports(count: usize) -> io::Result<Vec<u16>> {
    // The listeners are held until all ports are chosen, so that no port is chosen twice.
    let listeners = (0..count).map(|_| listener()).collect::<io::Result<Vec<_>>>()?;
    listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect()
}

fn listener() -> io::Result<TcpListener> {
    let random = SystemRandom::new();
    loop {
        let mut bytes = [0; 2];
        random.fill(&mut bytes).map_err(|_| io::Error::other("the system has no random numbers"))?;
        match TcpListener::bind((Ipv4Addr::UNSPECIFIED, FIRST + u16::from_le_bytes(bytes) % COUNT)) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            bound => return bound,
        }
    }
}
