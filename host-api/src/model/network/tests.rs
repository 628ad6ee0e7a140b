//! Subnets, spaces and network info.

use super::*;

fn interface(name: &str, addresses: &[(&str, u8)]) -> HostInterface {
    let address = |(text, bits): &(&str, u8)| {
        let address = text.parse().unwrap();
        InterfaceAddress { address, subnet: Subnet::around(address, *bits).unwrap() }
    };
    HostInterface {
        name: name.into(),
        mac: "00:16:3e:00:00:01".into(),
        addresses: addresses.iter().map(address).collect(),
    }
}

fn spaces(all: &[(&str, &[&str])]) -> Spaces {
    let subnets = |subnets: &[&str]| subnets.iter().map(|subnet| subnet.parse().unwrap()).collect();
    Spaces(all.iter().map(|(name, of)| (name.parse().unwrap(), subnets(of))).collect())
}

fn check(
    addresses: &[&str],
    interfaces: &[HostInterface],
    spaces: &Spaces,
    space: &str,
    expected: (&str, &str, &str),
) {
    let addresses: Vec<String> = addresses.iter().map(|text| (*text).to_owned()).collect();
    let info = network_info(HostNetwork { addresses: &addresses, interfaces }, spaces, &[], space);
    let bind: Vec<String> = info
        .bind_addresses
        .iter()
        .flat_map(|interface| {
            interface.addresses.iter().map(|at| format!("{}={}", interface.name, at.address))
        })
        .collect();
    let egress: Vec<String> = info.egress_subnets.iter().map(ToString::to_string).collect();
    let told = (bind.join(" "), info.ingress_addresses.join(" "), egress.join(" "));
    assert_eq!((told.0.as_str(), told.1.as_str(), told.2.as_str()), expected, "{space}");
}

#[test]
fn a_subnet_is_written_by_its_first_address() {
    for text in ["10.0.0.0/24", "0.0.0.0/0", "10.1.2.3/32", "2001:db8::/64", "::/0"] {
        assert_eq!(text.parse::<Subnet>().unwrap().to_string(), text);
    }
    for (text, reason) in [
        ("10.0.0.7/24", "its first address is 10.0.0.0"),
        ("10.0.0.0", "write it as 10.0.0.0/24 or 2001:db8::/64"),
        ("10.0.0.0/33", "write it as 10.0.0.0/24 or 2001:db8::/64"),
        ("x/8", "write it as 10.0.0.0/24 or 2001:db8::/64"),
    ] {
        assert_eq!(
            text.parse::<Subnet>().unwrap_err().to_string(),
            format!("invalid CIDR {text:?}: {reason}")
        );
    }
    let subnet: Subnet = "10.0.1.0/24".parse().unwrap();
    for (address, inside) in [("10.0.1.255", true), ("10.0.2.0", false), ("::ffff:10.0.1.1", false)] {
        assert_eq!(subnet.contains(address.parse().unwrap()), inside, "{address}");
    }
    assert!(Subnet::EVERYWHERE[1].contains("2001:db8::1".parse().unwrap()));
}

#[test]
fn an_address_is_in_the_space_of_its_smallest_subnet() {
    let spaces = spaces(&[("wide", &["10.0.0.0/8"]), ("inner", &["10.1.0.0/16"])]);
    for (address, space) in
        [("10.1.2.3", "inner"), ("10.2.0.1", "wide"), ("192.168.0.1", "alpha"), ("::1", "alpha")]
    {
        assert_eq!(spaces.of(address.parse().unwrap()), space);
    }
}

#[test]
fn a_binding_gets_what_the_host_has_in_its_space() {
    let host = [
        interface("eth0", &[("192.168.1.7", 24)]),
        interface("eth1", &[("10.0.0.8", 8), ("10.0.0.9", 8), ("fd00::9", 64)]),
    ];
    let inner = spaces(&[("inner", &["10.0.0.0/8"])]);
    let all = ["10.0.0.9", "192.168.1.7"];
    check(&all, &host, &inner, "inner", ("eth1=10.0.0.9 eth1=10.0.0.8", "10.0.0.9", "10.0.0.9/32"));
    check(&all, &host, &inner, "alpha", ("eth0=192.168.1.7 eth1=fd00::9", "192.168.1.7", "192.168.1.7/32"));
    let everything = "eth1=10.0.0.9 eth1=10.0.0.8 eth1=fd00::9 eth0=192.168.1.7";
    check(&all, &host, &Spaces::default(), "alpha", (everything, "10.0.0.9 192.168.1.7", "10.0.0.9/32"));
    check(&all, &host, &inner, "nowhere", ("", "", ""));
}

#[test]
fn o08_without_an_ingress_address_it_is_the_first_bind_address() {
    let host = [interface("eth0", &[("10.0.0.8", 8)])];
    check(&[], &host, &Spaces::default(), "alpha", ("eth0=10.0.0.8", "10.0.0.8", "10.0.0.8/32"));
    let inner = spaces(&[("inner", &["10.0.0.0/8"])]);
    check(&["203.0.113.5"], &host, &inner, "inner", ("eth0=10.0.0.8", "10.0.0.8", "10.0.0.8/32"));
}

#[test]
fn a_host_that_only_says_its_addresses_has_one_interface_without_a_name() {
    check(
        &["10.0.0.9", "host.example"],
        &[],
        &Spaces::default(),
        "alpha",
        ("=10.0.0.9", "10.0.0.9 host.example", "10.0.0.9/32"),
    );
}

#[test]
fn a_model_says_where_traffic_comes_from() {
    let addresses = vec!["10.0.0.5".to_owned()];
    let egress = ["192.0.2.0/24".parse().unwrap(), "2001:db8::/64".parse().unwrap()];
    let host = HostNetwork { addresses: &addresses, interfaces: &[] };
    let info = network_info(host, &Spaces::default(), &egress, ALPHA);
    assert_eq!((info.egress_subnets.as_slice(), info.ingress_address()), (&egress[..], Some("10.0.0.5")));
}

#[test]
fn a_subnet_has_a_first_and_a_last_address() {
    for (text, first, last) in [
        ("10.1.2.3/32", "10.1.2.3", "10.1.2.3"),
        ("10.1.2.0/23", "10.1.2.0", "10.1.3.255"),
        ("0.0.0.0/0", "0.0.0.0", "255.255.255.255"),
        ("2001:db8::/127", "2001:db8::", "2001:db8::1"),
        ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ] {
        let subnet: Subnet = text.parse().unwrap();
        assert_eq!((subnet.first().to_string().as_str(), subnet.last().to_string().as_str()), (first, last));
    }
}
