//! Bounds on open connections: one network, and one user wherever they call from, has no more than a quarter of all.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use periapt_host_api::UserName;

use crate::network::Network;

/// The most connections of one network to one listener: a quarter of all. An office behind one address fits, as does a
/// host with hundreds of clients.
const OF_NETWORK: usize = 256;
/// The most connections of one user to one listener: as many as a network.
const OF_USER: usize = OF_NETWORK;

/// The open connections of one listener, by network and by user. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connections(Arc<Mutex<BTreeMap<Holder, usize>>>);

/// A holder of connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Network(Network),
    User(UserName),
}

/// The permit of a connection. Dropping it gives the permit back.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    connections: Connections,
    holder: Holder,
}

impl Connections {
    /// Takes a permit for a connection from an address; none if its network has all that it may have.
    pub(crate) fn take(&self, address: IpAddr) -> Option<ConnectionPermit> {
        self.permit(Holder::Network(Network::of(address)), OF_NETWORK)
    }

    /// Takes a permit for a connection of a user; none if the user has all that a user may have.
    pub(crate) fn take_for(&self, user: &UserName) -> Option<ConnectionPermit> {
        self.permit(Holder::User(user.clone()), OF_USER)
    }

    fn permit(&self, holder: Holder, most: usize) -> Option<ConnectionPermit> {
        let mut open = self.0.lock();
        let count = open.entry(holder.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        drop(open);
        Some(ConnectionPermit { connections: self.clone(), holder })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock();
        match open.get_mut(&self.holder) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.holder)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_or_user_that_has_all_its_permits_leaves_those_of_others_and_gets_them_back() {
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
        let user = |name: &str| name.parse::<UserName>().unwrap();
        held.extend((0..OF_USER).map(|_| connections.take_for(&user("bob")).unwrap()));
        assert!(connections.take_for(&user("bob")).is_none());
        assert!(connections.take_for(&user("eve")).is_some());
        drop(held);
        assert!(connections.0.lock().is_empty());
    }
}
