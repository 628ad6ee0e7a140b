use proptest::prelude::*;

use super::*;

/// Returns a machine on which one unit has these ranges open, and to which these pairs of ranges and subnets are admitted.
fn machine(open: &[&str], admitted: &[(&str, &str)]) -> MachinePorts {
    let mut machine = MachinePorts::default();
    let ranges = open.iter().map(|range| range.parse().unwrap()).collect();
    machine.open.insert("app/0".parse().unwrap(), ranges);
    for (range, from) in admitted {
        let subnets = machine.admitted.entry(range.parse().unwrap()).or_default();
        subnets.insert(from.parse().unwrap());
    }
    machine
}

fn untouched(ranges: &[&str]) -> BTreeSet<PortRange> {
    ranges.iter().map(|range| range.parse().unwrap()).collect()
}

/// Returns rules as lines of text.
fn lines(rules: &FirewallRules) -> Vec<String> {
    let shown = |PortInterval { transport, first, last }: PortInterval| {
        PortRange::new(transport, first, last).unwrap().to_string()
    };
    let governed = rules.governed.iter().map(|interval| shown(*interval));
    let admitted = rules.admitted.iter().map(|(interval, from)| format!("{} from {from}", shown(*interval)));
    let pings = rules.pings.iter().flatten().map(|from| format!("icmp from {from}"));
    governed.chain(admitted).chain(pings).collect()
}

#[track_caller]
fn check(machines: &[MachinePorts], kept: &[&str], expected: &[&str]) {
    let machines: Vec<_> = machines.iter().collect();
    assert_eq!(lines(&FirewallRules::new(&machines, &untouched(kept)).unwrap()), expected);
}

#[test]
fn open_ports_are_governed_and_what_the_machine_admits_is_admitted() {
    check(&[], &[], &[]);
    check(&[machine(&["80", "53/udp"], &[])], &[], &["80/tcp", "53/udp"]);
    let admitted = [("80", "10.0.0.0/8"), ("80", "fd00::/64"), ("53/udp", "0.0.0.0/0")];
    let expected =
        ["80/tcp", "53/udp", "80/tcp from 10.0.0.0/8", "80/tcp from fd00::/64", "53/udp from 0.0.0.0/0"];
    check(&[machine(&["80", "53/udp"], &admitted)], &[], &expected);
    // What no unit of the host has open is no matter of the agent's, as when all machines of a model have one firewall.
    check(&[machine(&["80"], &[("81", "10.0.0.0/8")])], &[], &["80/tcp"]);
}

#[test]
fn intervals_do_not_overlap_and_those_that_touch_with_the_same_senders_are_one() {
    let machines = [machine(&["80-89", "85-99"], &[("80-89", "10.0.0.0/8"), ("85-99", "10.1.0.0/16")])];
    let expected = ["80-99/tcp", "80-89/tcp from 10.0.0.0/8", "90-99/tcp from 10.1.0.0/16"];
    check(&machines, &[], &expected);
    let singles = [machine(&["1", "2", "3"], &[("1", "::/0"), ("2", "::/0"), ("3", "::/0")])];
    check(&singles, &[], &["1-3/tcp", "1-3/tcp from ::/0"]);
    let all = [machine(&["0-65535"], &[("0-65535", "0.0.0.0/0"), ("0-65535", "::/0")])];
    check(&all, &[], &["0-65535/tcp", "0-65535/tcp from 0.0.0.0/0", "0-65535/tcp from ::/0"]);
}

#[test]
fn a_port_of_two_machines_is_admitted_if_either_admits_it() {
    let machines = [machine(&["80"], &[]), machine(&["80"], &[("80", "10.0.0.0/8")])];
    check(&machines, &[], &["80/tcp", "80/tcp from 10.0.0.0/8"]);
}

#[test]
fn ports_that_stay_untouched_are_not_governed_whatever_units_open() {
    let machines = [machine(&["20-30", "icmp"], &[("20-30", "10.0.0.0/8")])];
    let expected = ["20-21/tcp", "23-30/tcp", "20-21/tcp from 10.0.0.0/8", "23-30/tcp from 10.0.0.0/8"];
    check(&machines, &["22/tcp", "25/udp", "icmp"], &expected);
    check(&[machine(&["1-65535", "1-65535/udp"], &[])], &["0-65535", "0-65535/udp"], &[]);
}

#[test]
fn pings_are_governed_once_a_unit_opens_icmp() {
    let rules = |admitted: &[(&str, &str)], open: &[&str]| {
        FirewallRules::new(&[&machine(open, admitted)], &BTreeSet::new()).unwrap()
    };
    assert_eq!(rules(&[], &["80"]).pings, None);
    let none = rules(&[], &["icmp"]);
    assert_eq!(none.pings, Some(vec![]));
    assert!(!none.is_empty());
    let some = rules(&[("icmp", "10.0.0.0/8"), ("icmp", "10.1.0.0/16"), ("icmp", "fd00::/8")], &["icmp"]);
    assert_eq!(lines(&some), ["icmp from 10.0.0.0/8", "icmp from fd00::/8"]);
}

#[test]
fn rules_are_bounded_and_the_error_names_the_unit_with_the_most() {
    let ranges: Vec<String> = (0..MAX_RULES).map(|number| (2 * number + 1).to_string()).collect();
    let of = |number: usize| {
        let ranges: Vec<&str> = ranges.iter().take(number).map(String::as_str).collect();
        machine(&ranges, &[])
    };
    let few = machine(&["7/udp"], &[]);
    let rules = |number: usize| FirewallRules::new(&[&of(number), &few], &BTreeSet::new());
    assert_eq!(rules(MAX_RULES - 1).unwrap().governed.len(), MAX_RULES);
    let error = rules(MAX_RULES).unwrap_err().to_string();
    assert!(error.contains("more than 1024 rules") && error.contains("1024 ranges of app/0"), "{error}");
    // Thousands of subnets that nothing is open for are nothing to hold.
    let mut idle = MachinePorts::default();
    let subnets =
        (0..=u16::MAX).map(|number| Subnet::only(std::net::Ipv4Addr::from(u32::from(number)).into()));
    idle.admitted.insert("80".parse().unwrap(), subnets.collect());
    assert!(FirewallRules::new(&[&idle], &BTreeSet::new()).unwrap().is_empty());
    let open = machine(&["80"], &[]);
    assert!(FirewallRules::new(&[&idle, &open], &BTreeSet::new()).is_err());
}

/// Returns what the machines' rules say about a packet: admitted, dropped, or none of their business.
fn judged(
    machines: &[&MachinePorts],
    kept: &BTreeSet<PortRange>,
    packet: (Transport, u16, IpAddr),
) -> Option<bool> {
    let (transport, port, from) = packet;
    let port = PortRange::new(transport, port, port).unwrap();
    if kept.iter().any(|range| range.overlaps(&port)) {
        return None;
    }
    let mut open = machines.iter().flat_map(|machine| machine.open.values().flatten());
    open.find(|open| open.overlaps(&port))?;
    let mut admitted = machines.iter().flat_map(|machine| &machine.admitted);
    Some(
        admitted.any(|(range, subnets)| {
            range.overlaps(&port) && subnets.iter().any(|subnet| subnet.contains(from))
        }),
    )
}

/// Returns what the intervals say about it, each of which must be the only one.
fn looked_up(rules: &FirewallRules, (transport, port, from): (Transport, u16, IpAddr)) -> Option<bool> {
    let has = |interval: &PortInterval| {
        interval.transport == transport && (interval.first..=interval.last).contains(&port)
    };
    let governed = rules.governed.iter().filter(|interval| has(interval)).count();
    let admitted =
        rules.admitted.iter().filter(|(interval, subnet)| has(interval) && subnet.contains(from)).count();
    assert!(governed <= 1 && admitted <= governed, "{rules:?}");
    (governed == 1).then_some(admitted == 1)
}

fn range() -> impl Strategy<Value = PortRange> {
    let transport = prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)];
    let port = || prop_oneof![0..24_u16, 65_530..=65_535_u16];
    (transport, port(), port()).prop_map(|(transport, one, other)| {
        PortRange::new(transport, one.min(other), one.max(other)).unwrap()
    })
}

fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = (0..8_u8, 0..2_u8).prop_map(|(a, b)| IpAddr::from([10, a, 0, b]));
    let v6 = (0..8_u16, 0..2_u16).prop_map(|(a, b)| IpAddr::from([0xfd00, a, 0, 0, 0, 0, 0, b]));
    prop_oneof![v4, v6]
}

fn subnet() -> impl Strategy<Value = Subnet> {
    let bits = prop_oneof![Just(0), Just(13), Just(14), Just(15), Just(16), Just(31), Just(32)];
    (address(), bits).prop_map(|(address, bits)| Subnet::around(address, bits).unwrap())
}

fn machines() -> impl Strategy<Value = Vec<MachinePorts>> {
    let open = prop::collection::btree_set(range(), 0..4);
    let admitted = prop::collection::btree_map(range(), prop::collection::btree_set(subnet(), 0..4), 0..4);
    let machine = (open, admitted).prop_map(|(ranges, admitted)| {
        let open = BTreeMap::from([("app/0".parse::<UnitName>().unwrap(), ranges)]);
        MachinePorts { open, admitted }
    });
    prop::collection::vec(machine, 0..3)
}

proptest! {
    #[test]
    fn a_packet_is_admitted_exactly_by_what_the_machines_admit(
        machines in machines(),
        kept in prop::collection::btree_set(range(), 0..2),
        from in address(),
    ) {
        let machines: Vec<&MachinePorts> = machines.iter().collect();
        let rules = FirewallRules::new(&machines, &kept).unwrap();
        for transport in [Transport::Tcp, Transport::Udp] {
            for port in (0..26).chain(65_528..=65_535) {
                let packet = (transport, port, from);
                prop_assert_eq!(looked_up(&rules, packet), judged(&machines, &kept, packet), "{:?}", packet);
            }
        }
    }
}
