//! The ranges of addresses that are never reached, those that are private, and the IPv4 addresses inside IPv6 addresses.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::network::Subnet;

/// A range of addresses.
struct Range {
    first: IpAddr,
    bits: u8,
    /// The range in words, in the plural.
    what: &'static str,
}

const fn v4([a, b, c, d]: [u8; 4], bits: u8, what: &'static str) -> Range {
    Range { first: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits, what }
}

const fn v6([a, b, c, d]: [u16; 4], bits: u8, what: &'static str) -> Range {
    Range { first: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)), bits, what }
}

const LOOPBACK: &str = "loopback addresses";
const LINK_LOCAL: &str = "link-local addresses";
const METADATA: &str = "metadata services";
const MULTICAST: &str = "multicast addresses";
const RESERVED: &str = "reserved addresses";

/// The ranges that no grant opens. Clouds answer for the credentials of the host in those of metadata.
const NEVER: [Range; 23] = [
    v4([0, 0, 0, 0], 8, RESERVED),
    v4([127, 0, 0, 0], 8, LOOPBACK),
    v4([169, 254, 0, 0], 16, "link-local addresses and metadata services"),
    v4([100, 100, 100, 200], 32, METADATA),
    v4([168, 63, 129, 16], 32, METADATA),
    v4([192, 0, 0, 0], 24, RESERVED),
    v4([192, 88, 99, 0], 24, RESERVED),
    // Names in containers have these addresses.
    v4([198, 18, 0, 0], 15, RESERVED),
    v4([224, 0, 0, 0], 4, MULTICAST),
    // With the address of broadcasts.
    v4([240, 0, 0, 0], 4, RESERVED),
    // The unspecified and the loopback address, and the oldest forms of IPv4 addresses.
    v6([0, 0, 0, 0], 64, "loopback and reserved addresses"),
    // A translator's own prefix for local use (RFC 8215): its length is not known, and so neither is the address inside.
    v6([0x64, 0xff9b, 1, 0], 48, RESERVED),
    v6([0x100, 0, 0, 0], 64, RESERVED),
    v6([0x2001, 0x10, 0, 0], 28, RESERVED),
    v6([0xfd00, 0xec2, 0, 0], 32, METADATA),
    v6([0xfd00, 0xc1, 0, 0], 32, METADATA),
    v6([0xfd00, 0x42, 0, 0], 32, METADATA),
    v6([0xfd20, 0xce, 0, 0], 32, METADATA),
    v6([0xfe00, 0, 0, 0], 9, RESERVED),
    v6([0xfe80, 0, 0, 0], 10, LINK_LOCAL),
    v6([0xfec0, 0, 0, 0], 10, "site-local addresses"),
    v6([0xff00, 0, 0, 0], 8, MULTICAST),
    v6([0x5f00, 0, 0, 0], 16, RESERVED),
];

/// The ranges of private networks. That of carriers is among them: hosts of a network may be reached by it.
const PRIVATE: [Range; 5] = [
    v4([10, 0, 0, 0], 8, ""),
    v4([172, 16, 0, 0], 12, ""),
    v4([192, 168, 0, 0], 16, ""),
    v4([100, 64, 0, 0], 10, ""),
    v6([0xfc00, 0, 0, 0], 7, ""),
];

impl Range {
    fn subnet(&self) -> Option<Subnet> {
        Subnet::around(self.first, self.bits)
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.subnet().is_some_and(|own| own.contains(address))
    }

    fn has_all_of(&self, subnet: &Subnet) -> bool {
        self.subnet().is_some_and(|own| subnet.is_within(&own))
    }
}

/// Returns the range that is never reached in which an address lies, in words.
pub(super) fn never(address: IpAddr) -> Option<&'static str> {
    NEVER.iter().find(|range| range.contains(address)).map(|range| range.what)
}

/// Returns the range that is never reached which has all of a subnet, in words.
pub(super) fn never_any_of(subnet: &Subnet) -> Option<&'static str> {
    NEVER.iter().find(|range| range.has_all_of(subnet)).map(|range| range.what)
}

/// Returns true for an address of a private network.
pub(super) fn is_private(address: IpAddr) -> bool {
    PRIVATE.iter().any(|range| range.contains(address))
}

/// Returns true for a subnet of private addresses alone.
pub(super) fn is_all_private(subnet: &Subnet) -> bool {
    PRIVATE.iter().any(|range| range.has_all_of(subnet))
}

/// The most IPv4 addresses inside an IPv6 address.
const MOST_EMBEDDED: usize = 4;

/// Returns the IPv4 addresses for which an IPv6 address stands: by translation (RFC 6052), 6to4, Teredo's server and client,
/// and ISATAP in any network. The mapped form is no IPv6 address any more (`to_canonical`), and the others are never
/// reached ([`never`]).
pub(super) fn embedded(address: IpAddr) -> [Option<IpAddr>; MOST_EMBEDDED] {
    let IpAddr::V6(address) = address else { return [None; MOST_EMBEDDED] };
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| {
        let bits = (u32::from(high) << 16) | u32::from(low);
        IpAddr::V4(Ipv4Addr::from_bits(bits))
    };
    let is_translated = [a, b, c, d, e, f] == [0x64, 0xff9b, 0, 0, 0, 0];
    let is_6to4 = a == 0x2002;
    let is_teredo = [a, b] == [0x2001, 0];
    // The identifier of the interface; one bit of it says whether the address inside is unique.
    let is_isatap = e & !0x0300 == 0 && f == 0x5efe;
    [
        (is_translated || is_isatap).then(|| v4(g, h)),
        is_6to4.then(|| v4(b, c)),
        is_teredo.then(|| v4(c, d)),
        is_teredo.then(|| v4(!g, !h)),
    ]
}
