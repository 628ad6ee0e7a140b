//! The sockets on which keepers listen for units. While no keeper runs, connections wait in them.

use std::{
    collections::BTreeMap,
    net::{SocketAddr, TcpListener},
    os::fd::AsFd,
};

use parking_lot::Mutex;

use super::{HeldItem, PodHolder};

/// The first word of the names of listeners.
const LISTENER: &str = "listener ";

/// The listeners of an earlier keeper, by their addresses, and the way to the holder for those of this one.
#[derive(Debug, Default)]
pub(crate) struct HeldListeners {
    holder: PodHolder,
    earlier: Mutex<BTreeMap<SocketAddr, TcpListener>>,
}

impl HeldListeners {
    /// Returns true for a descriptor that is a listener's.
    pub(crate) fn is_listener(item: &HeldItem) -> bool {
        item.name.starts_with(LISTENER)
    }

    /// Takes the listeners that an earlier keeper handed over.
    pub(crate) fn new(holder: PodHolder, items: Vec<HeldItem>) -> Self {
        let listener = |HeldItem { name, descriptor, .. }: HeldItem| {
            let address = name.strip_prefix(LISTENER)?.parse::<SocketAddr>().ok()?;
            Some((address, TcpListener::from(descriptor)))
        };
        Self { holder, earlier: Mutex::new(items.into_iter().filter_map(listener).collect()) }
    }

    /// Takes an earlier keeper's listener at an address, with the connections that wait in it.
    pub(crate) fn take(&self, address: SocketAddr) -> Option<TcpListener> {
        self.earlier.lock().remove(&address)
    }

    /// Hands a listener over, for the next keeper.
    pub(crate) fn hold(&self, address: SocketAddr, listener: impl AsFd) {
        self.holder.hold(&name(address), "", listener);
    }

    /// Has the holder close a listener.
    pub(crate) fn release(&self, address: SocketAddr) {
        self.holder.release(&name(address));
    }

    /// Closes the earlier keeper's listeners that were not taken.
    pub(crate) fn forget(&self) {
        for address in std::mem::take(&mut *self.earlier.lock()).into_keys() {
            self.release(address);
        }
    }
}

fn name(address: SocketAddr) -> String {
    format!("{LISTENER}{address}")
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn a_listener_of_an_earlier_keeper_is_taken_once_with_the_connections_that_wait() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let client = TcpStream::connect(address).unwrap();
        let item = HeldItem { name: name(address), note: String::new(), descriptor: listener.into() };
        assert!(HeldListeners::is_listener(&item));
        let held = HeldListeners::new(PodHolder::default(), vec![item]);
        let taken = held.take(address).unwrap();
        assert_eq!(taken.accept().unwrap().1, client.local_addr().unwrap());
        assert!(held.take(address).is_none());
        held.forget();
        drop(taken);
        assert!(TcpStream::connect(address).is_err(), "nothing else holds it");
    }
}
