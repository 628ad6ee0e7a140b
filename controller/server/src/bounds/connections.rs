//! Bounds on open connections: one network, and one user wherever they call from, has no more than a quarter of all.

use std::net::IpAddr;

use periapt_host_api::UserName;

use super::slots::{Slot, Slots};
use crate::network::Network;

/// The most connections of one network, or of one user, to one listener: a quarter of all. An office behind one address
/// fits, as does a host with hundreds of clients.
const OF_HOLDER: usize = 256;

/// The open connections of one listener, by network and by user. The listener bounds all of them. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Connections(Slots<Holder>);

/// A holder of connections.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Holder {
    Network(Network),
    User(UserName),
}

/// The permit of a connection. Dropping it gives the permit back.
pub(crate) type ConnectionPermit = Slot<Holder>;

impl Default for Connections {
    fn default() -> Self {
        Self(Slots::new(OF_HOLDER, usize::MAX))
    }
}

impl Connections {
    /// Takes a permit for a connection from an address; none if its network has all that it may have.
    pub(crate) fn take(&self, address: IpAddr) -> Option<ConnectionPermit> {
        self.0.take(Holder::Network(Network::of(address)))
    }

    /// Takes a permit for a connection of a user; none if the user has all that a user may have.
    pub(crate) fn take_for(&self, user: &UserName) -> Option<ConnectionPermit> {
        self.0.take(Holder::User(user.clone()))
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
            (0..OF_HOLDER).map(|_| connections.take(address("192.0.2.1")).unwrap()).collect();
        assert!(connections.take(address("192.0.2.1")).is_none());
        assert!(connections.take(address("::ffff:192.0.2.1")).is_none(), "it is the same host");
        assert!(connections.take(address("192.0.2.2")).is_some());
        held.pop();
        assert!(connections.take(address("192.0.2.1")).is_some());
        let hosts = (0..OF_HOLDER).map(|host| address(&format!("2001:db8::{host:x}")));
        held.extend(hosts.map(|host| connections.take(host).unwrap()));
        assert!(connections.take(address("2001:db8::ffff:1")).is_none(), "a host can have any of them");
        assert!(connections.take(address("2001:db8:0:1::1")).is_some());
        let user = |name: &str| name.parse::<UserName>().unwrap();
        held.extend((0..OF_HOLDER).map(|_| connections.take_for(&user("bob")).unwrap()));
        assert!(connections.take_for(&user("bob")).is_none());
        assert!(connections.take_for(&user("eve")).is_some());
        drop(held);
        assert!(connections.0.is_free());
    }
}
