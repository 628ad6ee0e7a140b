use core::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn grants(text: &str) -> EgressGrants {
    text.parse().unwrap()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn open() -> EgressBars {
    EgressBars { reach: EgressReach::Granted, ..EgressBars::default() }
}

/// Judges `NAME@ADDRESS:PORT` or `ADDRESS:PORT`.
fn judged(granted: &str, bars: &EgressBars, to: &str) -> Result<(), EgressRefusal> {
    let (name, to) = to.split_once('@').map_or((None, to), |(name, to)| (Some(name), to));
    let (at, port) = to.rsplit_once(':').unwrap();
    let address = address(at.trim_matches(['[', ']']));
    grants(granted).admit(bars, EgressAttempt { name, address, port: port.parse().unwrap() })
}

#[test]
fn a_destination_is_admitted_exactly_by_a_grant_that_has_it() {
    for (granted, to, expected) in [
        ("", "203.0.113.7:443", false),
        ("203.0.113.7", "203.0.113.7:443", true),
        ("203.0.113.7:443", "203.0.113.7:443", true),
        ("203.0.113.7:443", "203.0.113.7:80", false),
        ("203.0.113.7", "203.0.113.7:0", false),
        ("203.0.113.0/24:5432", "203.0.113.200:5432", true),
        ("203.0.113.0/24", "203.0.114.1:5432", false),
        ("203.0.113.7", "[::ffff:203.0.113.7]:443", true),
        ("[2001:db8::/32]:443", "[2001:db8::7]:443", true),
        ("2001:db8::7", "[2001:db8::8]:443", false),
        ("example.com", "example.com@203.0.113.7:1", true),
        ("example.com:443", "EXAMPLE.com.@203.0.113.7:443", true),
        ("example.com:443", "example.com@203.0.113.7:444", false),
        ("example.com", "www.example.com@203.0.113.7:443", false),
        ("example.com", "203.0.113.7:443", false),
        ("*.example.com", "www.example.com@203.0.113.7:443", true),
        ("*.example.com", "a.b.example.com@203.0.113.7:443", true),
        ("*.example.com", "example.com@203.0.113.7:443", false),
        ("*.example.com", ".example.com@203.0.113.7:443", false),
        ("*.example.com", "badexample.com@203.0.113.7:443", false),
        ("example.com,203.0.113.0/24", "other.example@203.0.113.7:443", true),
        ("0.0.0.0/0", "203.0.113.7:443", true),
        ("0.0.0.0/0", "[2001:db8::7]:443", false),
    ] {
        assert_eq!(judged(granted, &open(), to).is_ok(), expected, "{granted:?} to {to}");
    }
}

#[test]
fn private_addresses_are_admitted_by_grants_of_private_addresses_alone() {
    let everything = "0.0.0.0/0,::/0,*.example.com,0.0.0.0/1,fc00::/6";
    for private in ["10.1.2.3", "172.31.0.1", "192.168.0.1", "100.64.0.1", "[fd12::1]"] {
        for to in [format!("{private}:80"), format!("db.example.com@{private}:80")] {
            assert_eq!(judged(everything, &open(), &to), Err(EgressRefusal::Private), "{to}");
        }
    }
    let both = "*.example.com,10.1.0.0/16:80";
    assert_eq!(judged(both, &open(), "db.example.com@10.1.2.3:80"), Ok(()));
    assert_eq!(judged(both, &open(), "10.1.2.3:80"), Ok(()));
    assert_eq!(judged(both, &open(), "db.example.com@10.1.2.3:81"), Err(EgressRefusal::Private));
    let public = EgressBars { reach: EgressReach::Public, ..EgressBars::default() };
    assert_eq!(judged(both, &public, "10.1.2.3:80"), Err(EgressRefusal::PrivateHere));
    assert_eq!(judged("203.0.113.7", &public, "203.0.113.7:80"), Ok(()));
}

#[test]
fn the_operator_of_the_host_has_the_last_word() {
    let everything = "0.0.0.0/0,::/0,10.0.0.0/8";
    let nothing = EgressBars { reach: EgressReach::Nothing, ..EgressBars::default() };
    assert_eq!(judged(everything, &nothing, "203.0.113.7:80"), Err(EgressRefusal::NothingCounts));
    let bars = EgressBars {
        denied: vec!["203.0.113.0/24".parse().unwrap()],
        own: [address("198.51.100.1")].into(),
        controllers: [address("198.51.100.2")].into(),
        agents: [(address("10.0.0.9"), 17072)].into(),
        ..open()
    };
    for (to, refusal) in [
        ("203.0.113.7:80", EgressRefusal::Denied),
        // The same addresses behind translators and tunnels.
        ("[64:ff9b::203.0.113.7]:80", EgressRefusal::Denied),
        ("[2002:cb00:7107::1]:80", EgressRefusal::Denied),
        ("198.51.100.1:80", EgressRefusal::OwnHost),
        ("[64:ff9b::198.51.100.1]:80", EgressRefusal::OwnHost),
        ("198.51.100.2:17070", EgressRefusal::Controller),
        ("10.0.0.9:17072", EgressRefusal::Agent),
    ] {
        assert_eq!(judged(everything, &bars, to), Err(refusal), "{to}");
    }
    assert_eq!(judged(everything, &bars, "10.0.0.9:80"), Ok(()));
    assert_eq!(judged(everything, &bars, "[64:ff9b::192.0.2.1]:80"), Ok(()));
}

#[test]
fn a_name_is_looked_up_only_if_it_or_everything_is_granted() {
    for (granted, name, port, expected) in [
        ("", "example.com", None, false),
        ("203.0.113.0/24", "example.com", None, false),
        ("example.com:443", "example.com", None, true),
        ("example.com:443", "Example.COM.", Some(443), true),
        ("example.com:443", "example.com", Some(80), false),
        ("0.0.0.0/0", "example.com", Some(80), true),
        ("::/0:1", "", Some(80), false),
        ("[::/0]:443", "example.com", Some(443), true),
        ("0.0.0.0/0", "exa mple.com", None, false),
        ("0.0.0.0/0", "", None, false),
        ("0.0.0.0/0", &"a.".repeat(200), None, false),
    ] {
        let Ok(granted) = granted.parse::<EgressGrants>() else {
            assert_eq!(granted, "::/0:1", "an address with a port is in brackets");
            continue;
        };
        assert_eq!(granted.may_look_up(name, port), expected, "{granted} of {name:?}");
    }
}

#[test]
fn grants_are_read_and_written_alike() {
    for (text, written) in [
        ("", ""),
        (" , ", ""),
        ("example.com", "example.com"),
        ("API.Example.com.:443", "api.example.com:443"),
        ("*.example.com:80,_dns.example.com", "*.example.com:80,_dns.example.com"),
        ("203.0.113.7/32", "203.0.113.7"),
        ("10.0.0.0/8:5432", "10.0.0.0/8:5432"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]", "2001:db8::7"),
        ("[2001:db8::7]:443", "[2001:db8::7]:443"),
        ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
    ] {
        assert_eq!(grants(text).to_string(), written, "{text}");
        assert_eq!(grants(written), grants(text));
        let json = serde_json::to_value(grants(text)).unwrap();
        assert_eq!(serde_json::from_value::<EgressGrants>(json).unwrap(), grants(text));
    }
    // A program of a later version may refuse more: what is stored is read all the same, and not reached.
    let stored: EgressGrants = serde_json::from_value(serde_json::json!(["169.254.169.254"])).unwrap();
    let attempt = EgressAttempt { name: None, address: address("169.254.169.254"), port: 80 };
    assert!(matches!(stored.admit(&open(), attempt), Err(EgressRefusal::Never(_))));
}

#[test]
fn what_cannot_be_granted_is_one_error_that_names_it() {
    for (text, reason) in [
        ("http://example.com", "a port is a number from 1 to 65535"),
        ("example.com:0", "a port is a number from 1 to 65535"),
        ("example.com:+80", "a port is a number from 1 to 65535"),
        ("example.com:65536", "a port is a number from 1 to 65535"),
        ("example.com:", "a port is a number from 1 to 65535"),
        ("db", "a name has a domain"),
        ("localhost", "a name has a domain"),
        ("*.com", "a name has a domain"),
        ("app.localhost", "it is a name of the unit itself"),
        ("*", "write it as HOST"),
        ("a.*.example.com", "write it as HOST"),
        ("user@example.com", "write it as HOST"),
        ("exämple.com", "write it as HOST"),
        ("127.1", "write it as HOST"),
        ("0x7f.0x1", "write it as HOST"),
        ("[2001:db8::7", "write it as HOST"),
        ("[2001:db8::7]443", "write it as HOST"),
        ("2001:db8::7:443:1:2:3:4:5", "write it as HOST"),
        ("10.0.0.7/24", "its first address is 10.0.0.0"),
        ("10.0.0.0/33", "write it as 10.0.0.0/24"),
        ("127.0.0.1", "loopback addresses are never reached"),
        ("169.254.169.254:80", "link-local addresses and metadata services are never reached"),
        ("224.0.0.0/8", "multicast addresses are never reached"),
        ("fe80::/64", "link-local addresses are never reached"),
        ("fd00:ec2::254", "metadata services are never reached"),
        ("::ffff:0.0.0.0/96", "loopback and reserved addresses are never reached"),
    ] {
        let error = text.parse::<EgressGrants>().unwrap_err().to_string();
        assert!(error.starts_with("invalid destination ") && error.contains(reason), "{text}: {error}");
    }
    let many = vec!["example.com"; MAX_EGRESS_GRANTS + 1].join(",");
    assert_eq!(many.parse::<EgressGrants>(), Err(EgressGrantError::TooMany(MAX_EGRESS_GRANTS + 1)));
}

/// Addresses that are never reached.
const NEVER: [&str; 30] = [
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.1.0",
    "198.19.255.255",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:0:127.0.0.1",
    "64:ff9b:1::a9fe:a9fe",
    "fe80::a9fe:a9fe",
    "fe80::1",
    "fec0::1",
    "ff02::1",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
];

/// All that can be granted, and names for what cannot.
const ALL: &str =
    "0.0.0.0/0,::/0,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7,*.example.com";

fn is_refused(address: IpAddr) -> Result<(), TestCaseError> {
    for name in [None, Some("www.example.com")] {
        for port in [1, 80, 443, 17070, 65535] {
            let attempt = EgressAttempt { name, address, port };
            prop_assert!(grants(ALL).admit(&open(), attempt).is_err(), "{attempt:?}");
        }
    }
    Ok(())
}

/// Returns IPv6 addresses that stand for an IPv4 address, with the rest of the address drawn.
fn forms(of: Ipv4Addr, rest: u64) -> Vec<Ipv6Addr> {
    let (bits, rest) = (u128::from(of.to_bits()), u128::from(rest));
    let prefix = |segments: [u16; 8]| Ipv6Addr::from(segments).to_bits();
    let network = rest | (0x2001_0db8 << 96);
    [
        of.to_ipv6_mapped().to_bits(),
        bits,
        prefix([0, 0, 0, 0, 0xffff, 0, 0, 0]) | bits,
        prefix([0x64, 0xff9b, 0, 0, 0, 0, 0, 0]) | bits,
        prefix([0x64, 0xff9b, 1, 0, 0, 0, 0, 0]) | bits,
        prefix([0x2002, 0, 0, 0, 0, 0, 0, 0]) | (bits << 80) | rest,
        prefix([0x2001, 0, 0, 0, 0, 0, 0, 0]) | (bits << 64) | rest,
        prefix([0x2001, 0, 0xcb00, 0x7107, 0, 0, 0, 0]) | u128::from(!of.to_bits()),
        (network & !0xffff_ffff_ffff_ffff) | (0x0000_5efe << 32) | bits,
        (network & !0xffff_ffff_ffff_ffff) | (0x0200_5efe << 32) | bits,
        prefix([0xfe80, 0, 0, 0, 0, 0x5efe, 0, 0]) | bits,
    ]
    .map(Ipv6Addr::from_bits)
    .to_vec()
}

#[test]
fn what_is_never_reached_is_reached_in_no_form() {
    for text in NEVER {
        is_refused(address(text)).unwrap();
        if let IpAddr::V4(of) = address(text) {
            for form in forms(of, 0x0123_4567_89ab_cdef) {
                is_refused(form.into()).unwrap();
            }
        }
    }
}

proptest! {
    #[test]
    fn no_form_of_an_address_is_admitted_that_is_not_admitted_itself(bits: u32, rest: u64) {
        let of = Ipv4Addr::from_bits(bits);
        // Without the grants of private addresses: no form of these is admitted at all.
        let admits = |address: IpAddr| {
            let attempt = EgressAttempt { name: Some("www.example.com"), address, port: 443 };
            grants("0.0.0.0/0,::/0,*.example.com").admit(&open(), attempt).is_ok()
        };
        if !admits(of.into()) {
            for form in forms(of, rest) {
                prop_assert!(!admits(form.into()), "{form} of {of}");
            }
        }
    }

    #[test]
    fn ranges_that_are_never_reached_are_refused_whole(low: u32, number in 0_usize..8) {
        let (first, bits) = [
            ([0, 0, 0, 0], 8),
            ([127, 0, 0, 0], 8),
            ([169, 254, 0, 0], 16),
            ([198, 18, 0, 0], 15),
            ([192, 0, 0, 0], 24),
            ([224, 0, 0, 0], 4),
            ([240, 0, 0, 0], 4),
            ([168, 63, 129, 16], 32),
        ][number];
        let mask = u32::MAX.checked_shr(bits).unwrap_or(0);
        let address = Ipv4Addr::from_bits(Ipv4Addr::from(first).to_bits() | (low & mask));
        is_refused(address.into())?;
        for form in forms(address, u64::from(low)) {
            is_refused(form.into())?;
        }
    }

    #[test]
    fn link_local_and_multicast_addresses_are_refused(rest: u128) {
        for (first, bits) in [("fe80::", 10), ("fec0::", 10), ("ff00::", 8), ("fd00:ec2::", 32), ("::", 64)] {
            let first: Ipv6Addr = first.parse().unwrap();
            is_refused(Ipv6Addr::from_bits(first.to_bits() | (rest & (u128::MAX >> bits))).into())?;
        }
    }

    #[test]
    fn nothing_is_admitted_without_a_grant_and_no_text_harms(text in ".{0,80}", bits: u128, port: u16) {
        let address = IpAddr::V6(Ipv6Addr::from_bits(bits));
        let attempt = EgressAttempt { name: Some(&text), address, port };
        prop_assert!(EgressGrants::default().admit(&open(), attempt).is_err());
        if let Ok(read) = text.parse::<EgressGrants>() {
            prop_assert_eq!(read.to_string().parse::<EgressGrants>(), Ok(read));
        }
    }
}
