//! Bounds on open connections: so many of all, and of one network no more than a quarter, so that nobody takes all
//! places from one place.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;

/// The most connections of one network to one listener: a quarter of all. An office behind one address fits, as does a
/// host with hundreds of clients.
const OF_NETWORK: usize = 256;

/// The bits of an IPv6 address that name a network; hosts choose the rest themselves.
const IPV6_NETWORK: u128 = !(u64::MAX as u128);

/// The open connections of one listener, by network. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// The place of a connection. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    connections: Connections,
    network: IpAddr,
}

impl Connections {
    /// Takes a place for a connection from an address; none if its network has all that it may have.
    pub(crate) fn take(&self, address: IpAddr) -> Option<ConnectionPlace> {
        let network = network_of(address);
        let mut open = self.0.lock();
        let count = open.entry(network).or_default();
        if *count >= OF_NETWORK {
            return None;
        }
        *count += 1;
        drop(open);
        Some(ConnectionPlace { connections: self.clone(), network })
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock();
        match open.get_mut(&self.network) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.network)),
        }
    }
}

/// Returns the network of an address: an IPv4 address itself, or the first half of an IPv6 address.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & IPV6_NETWORK).into()),
        IpAddr::V4(address) => IpAddr::V4(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_that_has_all_its_places_leaves_those_of_others_and_gets_them_back() {
        let connections = Connections::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut held: Vec<_> =
            (0..OF_NETWORK).map(|_| connections.take(address("192.0.2.1")).unwrap()).collect();
        assert!(connections.take(address("192.0.2.1")).is_none());
        assert!(connections.take(address("::ffff:192.0.2.1")).is_none(), "it is the same host");
        assert!(connections.take(address("192.0.2.2")).is_some());
        held.pop();
        assert!(connections.take(address("192.0.2.1")).is_some());
        let hosts = (0..OF_NETWORK).map(|host| address(&format!("2001:db8::{host:x}")));
        held.extend(hosts.map(|host| connections.take(host).unwrap()));
        assert!(connections.take(address("2001:db8::ffff:1")).is_none(), "a host can have any of them");
        assert!(connections.take(address("2001:db8:0:1::1")).is_some());
        drop(held);
        assert!(connections.0.lock().is_empty());
    }
}
