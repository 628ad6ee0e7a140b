//! The network interfaces of this host.

use std::{collections::BTreeSet, ffi::CStr, io, net::IpAddr, ptr};

use periapt_host_api::network::{HostInterface, InterfaceAddress, Subnet};

/// The most interfaces to report, and the most addresses of each: a host of containers may have thousands.
const MAX_INTERFACES: usize = 32;
const MAX_ADDRESSES: usize = 16;

/// Returns the interfaces that are up, with the addresses that other hosts can reach: no loopback or link-local ones.
pub(crate) fn interfaces() -> io::Result<Vec<HostInterface>> {
    let mut found: Vec<HostInterface> = Vec::new();
    for entry in addresses()? {
        let Some(subnet) = Subnet::around(entry.address, entry.bits).filter(|_| reachable(entry.address))
        else {
            continue;
        };
        let address = InterfaceAddress { address: entry.address, subnet };
        if let Some(interface) = found.iter_mut().find(|interface| interface.name == entry.name) {
            if interface.addresses.len() < MAX_ADDRESSES {
                interface.addresses.push(address);
            }
        } else if found.len() < MAX_INTERFACES {
            let mac = mac(&entry.name);
            found.push(HostInterface { name: entry.name, mac, addresses: vec![address] });
        }
    }
    for interface in &mut found {
        interface.addresses.sort();
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Returns all addresses of the interfaces that are up.
pub(crate) fn own_addresses() -> io::Result<BTreeSet<IpAddr>> {
    Ok(addresses()?.into_iter().map(|entry| entry.address).collect())
}

/// Returns the addresses of some interfaces, the preferred first: IPv4 before IPv6, in the order of the interfaces.
pub(crate) fn preferred(interfaces: &[HostInterface]) -> Vec<String> {
    let all = interfaces.iter().flat_map(|interface| &interface.addresses);
    let mut all: Vec<IpAddr> = all.map(|address| address.address).collect();
    all.sort_by_key(IpAddr::is_ipv6);
    all.into_iter().take(MAX_INTERFACES).map(|address| address.to_string()).collect()
}

/// Returns the addresses on which the agent listens for its units: the given ones, or those that other machines are told, or
/// those of the interfaces if it tells names alone.
pub(crate) fn to_listen_on(given: &[IpAddr], told: &[String], interfaces: &[HostInterface]) -> Vec<IpAddr> {
    let parsed = |texts: &[String]| texts.iter().filter_map(|text| text.parse().ok()).collect::<Vec<_>>();
    match (given, parsed(told)) {
        ([], told) if told.is_empty() => parsed(&preferred(interfaces)),
        ([], told) => told,
        (given, _) => given.to_vec(),
    }
}

fn reachable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            !address.is_loopback() && !address.is_link_local() && !address.is_unspecified()
        }
        IpAddr::V6(address) => {
            !address.is_loopback() && !address.is_unicast_link_local() && !address.is_unspecified()
        }
    }
}

/// Returns the hardware address; empty if there is none.
fn mac(name: &str) -> String {
    let plain = !name.contains('/') && name != "..";
    let text =
        plain.then(|| std::fs::read_to_string(format!("/sys/class/net/{name}/address")).ok()).flatten();
    text.unwrap_or_default().trim().chars().take(64).collect()
}

/// One address of one interface.
struct Entry {
    name: String,
    address: IpAddr,
    bits: u8,
}

/// A list from the system, freed when it is dropped.
struct List(*mut libc::ifaddrs);

impl Drop for List {
    #[expect(unsafe_code, reason = "the list is the system's to free")]
    fn drop(&mut self) {
        // SAFETY: it came from `getifaddrs`, is freed once, and no reference into it is left.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

#[expect(unsafe_code, reason = "only the C library lists addresses")]
fn addresses() -> io::Result<Vec<Entry>> {
    let mut first = ptr::null_mut();
    // SAFETY: `first` has room for one pointer, which the call sets on success.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let list = List(first);
    let mut entries = Vec::new();
    let mut next = list.0;
    // SAFETY: each node is null, or a valid node of the list, which lives until the end of this function.
    while let Some(node) = unsafe { next.as_ref() } {
        next = node.ifa_next;
        if node.ifa_flags & (libc::IFF_UP as u32) == 0 || node.ifa_name.is_null() {
            continue;
        }
        // SAFETY: both are null, or socket addresses of the given family; the name is a C string.
        let (address, mask, name) =
            unsafe { (ip(node.ifa_addr), ip(node.ifa_netmask), CStr::from_ptr(node.ifa_name)) };
        if let (Some(address), Some(mask), Ok(name)) = (address, mask, name.to_str()) {
            let ones = match mask {
                IpAddr::V4(mask) => mask.to_bits().count_ones(),
                IpAddr::V6(mask) => mask.to_bits().count_ones(),
            };
            entries.push(Entry { name: name.to_owned(), address, bits: u8::try_from(ones).unwrap_or(0) });
        }
    }
    Ok(entries)
}

/// Returns the IP address in a socket address, if it has one.
///
/// # Safety
/// The pointer must be null, or point to a whole socket address of the family that it states.
#[expect(unsafe_code, reason = "socket addresses are told apart by their first field")]
unsafe fn ip(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller guarantees this; unaligned reads copy the value.
    unsafe {
        match i32::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let address = address.cast::<libc::sockaddr_in>().read_unaligned();
                Some(IpAddr::from(u32::from_be(address.sin_addr.s_addr).to_be_bytes()))
            }
            libc::AF_INET6 => {
                let address = address.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(IpAddr::from(address.sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_is_listed_by_the_system_and_told_to_nobody() {
        let all = addresses().unwrap();
        let loopback = all.iter().find(|entry| entry.address == IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!((loopback.name.as_str(), loopback.bits), ("lo", 8));
        let told = interfaces().unwrap();
        assert!(told.iter().all(|it| it.name != "lo" && !it.addresses.is_empty()), "{told:?}");
    }

    fn host(addresses: &[&str]) -> Vec<HostInterface> {
        let at = |text: &&str| {
            let address = text.parse().unwrap();
            InterfaceAddress { address, subnet: Subnet::only(address) }
        };
        let addresses = addresses.iter().map(at).collect();
        vec![HostInterface { name: "e".into(), mac: String::new(), addresses }]
    }

    #[test]
    fn version_4_is_preferred() {
        assert_eq!(preferred(&host(&["fd00::1", "10.0.0.1"])), ["10.0.0.1", "fd00::1"]);
    }

    #[test]
    fn an_agent_listens_on_the_addresses_that_it_is_given_or_tells() {
        let host = host(&["10.0.0.1"]);
        let listens = |given: &[&str], told: &[&str]| {
            let given: Vec<IpAddr> = given.iter().map(|text| text.parse().unwrap()).collect();
            let told: Vec<String> = told.iter().map(ToString::to_string).collect();
            to_listen_on(&given, &told, &host).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(listens(&["127.0.0.2"], &["10.0.0.9"]), ["127.0.0.2"]);
        assert_eq!(listens(&[], &["node-1.example", "10.0.0.9"]), ["10.0.0.9"]);
        assert_eq!(listens(&[], &["node-1.example"]), ["10.0.0.1"]);
    }
}
