//! Networks of callers: the part of an address that a caller cannot change at will.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

/// The bits of an IPv6 address that name a network. A host can take any address of its /64.
const NETWORK_BITS: u32 = 64;

/// The network of a caller: an IPv4 address, or the /64 of an IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Network(IpAddr);

impl Network {
    /// Returns the network of an address. An IPv4 address that is mapped to IPv6 counts as the IPv4 address.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => {
                Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << (128 - NETWORK_BITS))).into()
            }
        })
    }
}

/// Formats the network as an IPv4 address, or as `ADDRESS/64`.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(f),
            IpAddr::V6(address) => write!(f, "{address}/{NETWORK_BITS}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_an_ipv4_address_or_an_ipv6_prefix() {
        let check = |address: &str, network: &str| {
            assert_eq!(Network::of(address.parse().unwrap()).to_string(), network, "{address}");
        };
        check("192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64");
        check("::1", "::/64");
    }
}
