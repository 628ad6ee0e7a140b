//! The route of a network that has the loopback alone.

use std::{io, net::Ipv4Addr};

use crate::{
    attribute::attribute,
    message::{ANSWERED, NEW, REQUEST, ask, message},
};

const NEW_ROUTE: u16 = 24;
const IPV4: u8 = 2;

/// Adds a route to this process's network by which each IPv4 address is the host's own, with the loopback's as the source.
///
/// # Errors
/// The kernel refuses it, or this process has no right over the network.
pub fn make_all_addresses_local() -> io::Result<()> {
    let (local_table, local, of_host, by_boot, loopback) = (255, 2, 254, 3, 1_u32);
    let mut route = vec![IPV4, 0, 0, 0, local_table, by_boot, of_host, local];
    route.extend([0; 4]);
    route.extend(attribute(4, &loopback.to_ne_bytes()));
    route.extend(attribute(7, &Ipv4Addr::LOCALHOST.octets()));
    ask(None, &message(NEW_ROUTE, REQUEST | ANSWERED | NEW, 1, &route), 1)
}
