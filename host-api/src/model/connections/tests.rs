use std::collections::BTreeSet;

use proptest::{collection::btree_map, prelude::*};

use super::*;
use crate::{
    ApplicationName, ModelUuid, RelationId,
    network::Subnet,
    ports::PortRange,
    relation::{Endpoint, Role, Scope},
    status::Life,
    view::{RelationView, RemoteEnd},
};

fn rules(all: &[(&str, &[&str])]) -> IngressRules {
    let subnets = |from: &[&str]| from.iter().map(|subnet| subnet.parse().unwrap()).collect();
    all.iter().map(|(range, from)| (range.parse().unwrap(), subnets(from))).collect()
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn related(ends: &[&str]) -> RelationView {
    let end = |application: &&str| Endpoint {
        application: application.parse().unwrap(),
        name: "end".parse().unwrap(),
        interface: "sql".parse().unwrap(),
        role: Role::Peer,
    };
    RelationView {
        id: RelationId(1),
        endpoints: ends.iter().map(end).collect(),
        scope: Scope::Global,
        life: Life::Alive,
        suspended: false,
        state: Default::default(),
        state_since: Default::default(),
        members: Default::default(),
        remote: None,
        egress: Vec::new(),
    }
}

#[test]
fn each_origin_gets_what_the_table_says() {
    use ConnectionOrigin::{Host, OtherUnit, RelatedApplication, SameApplication};
    use ConnectionRefusal::{AddressNotAdmitted, Closed, NotRelated};
    let rules = rules(&[
        ("80/tcp", &["10.0.0.0/8"]),
        ("8000-8009/tcp", &["0.0.0.0/0", "::/0"]),
        ("8005/tcp", &["192.168.0.0/16"]),
        ("53/udp", &["0.0.0.0/0"]),
        ("icmp", &["0.0.0.0/0"]),
    ]);
    let (inside, outside) = (address("10.1.2.3"), address("192.0.2.1"));
    let (mapped, six) = (address("::ffff:10.1.2.3"), address("2001:db8::1"));
    let not_to = |port, address| Err(AddressNotAdmitted { port, address });
    for (origin, port, expected) in [
        (Host(inside), 80, Ok(())),
        (Host(mapped), 80, Ok(())),
        (Host(outside), 80, not_to(80, outside)),
        (Host(six), 80, not_to(80, six)),
        (Host(outside), 7999, Err(Closed(7999))),
        (Host(outside), 8000, Ok(())),
        (Host(six), 8009, Ok(())),
        (Host(outside), 8010, Err(Closed(8010))),
        // Two ranges have the port: either is enough.
        (Host(outside), 8005, Ok(())),
        // Open for UDP is not open for TCP.
        (Host(outside), 53, Err(Closed(53))),
        (Host(inside), 0, Err(Closed(0))),
        (SameApplication, 22, Ok(())),
        (RelatedApplication, 22, Ok(())),
        (OtherUnit(inside), 80, Ok(())),
        (OtherUnit(outside), 80, Err(NotRelated(80))),
        (OtherUnit(inside), 22, Err(NotRelated(22))),
    ] {
        assert_eq!(origin.admit(&rules, Transport::Tcp, port), expected, "{origin:?} {port}");
    }
    assert_eq!(Host(outside).admit(&rules, Transport::Udp, 53), Ok(()));
    assert_eq!(Host(outside).admit(&rules, Transport::Udp, 8000), Err(Closed(8000)));
}

#[test]
fn a_unit_is_known_by_its_relations() {
    let host = address("10.0.0.1");
    let of = |asking: &str, target: &str, relations: &[RelationView]| {
        let mut related = RelatedApplications::default();
        for (id, relation) in (1..).zip(relations) {
            related.put(&RelationView { id: RelationId(id), ..relation.clone() });
        }
        ConnectionOrigin::of_unit(&asking.parse().unwrap(), host, &target.parse().unwrap(), &related)
    };
    let (same, other) = (ConnectionOrigin::SameApplication, ConnectionOrigin::OtherUnit(host));
    assert_eq!((of("app/0", "app/0", &[]), of("app/0", "app/7", &[])), (same, same));
    assert_eq!(of("app/0", "db/0", &[]), other);
    let relation = related(&["app", "db"]);
    let yes = ConnectionOrigin::RelatedApplication;
    assert_eq!(of("app/0", "db/0", std::slice::from_ref(&relation)), yes);
    assert_eq!(of("db/0", "app/0", &[related(&["x", "y"]), relation.clone()]), yes);
    // Neither of them alone is enough, and a peer relation relates to no other application.
    let none = [related(&["app", "x"]), related(&["x", "db"]), related(&["app"])];
    assert_eq!(of("app/0", "db/0", &none), other);
    // An application of this name in another model is not this one.
    let remote = RemoteEnd { model: ModelUuid(uuid::Uuid::nil()), offer: None };
    for (change, expected) in [
        (RelationView { life: Life::Dying, ..relation.clone() }, yes),
        (RelationView { life: Life::Dead, ..relation.clone() }, other),
        (RelationView { suspended: true, ..relation.clone() }, other),
        (RelationView { remote: Some(remote), ..relation.clone() }, other),
    ] {
        assert_eq!(of("app/0", "db/0", std::slice::from_ref(&change)), expected, "{change:?}");
    }
}

#[test]
fn applications_are_related_until_the_last_of_their_relations_goes() {
    let [app, db]: [ApplicationName; 2] = ["app", "db"].map(|name| name.parse().unwrap());
    let mut all = RelatedApplications::default();
    let with_id = |id| RelationView { id: RelationId(id), ..related(&["app", "db"]) };
    all.put(&with_id(1));
    all.put(&with_id(2));
    all.remove(&RelationId(1));
    assert!(all.are_related(&app, &db) && all.are_related(&db, &app));
    all.put(&RelationView { suspended: true, ..with_id(2) });
    assert!(!all.are_related(&app, &db) && !all.are_related(&db, &app));
    assert_eq!(all, RelatedApplications::default(), "nothing is left");
}

#[test]
fn related_applications_are_found_in_the_order_of_names() {
    let mut all = RelatedApplications::default();
    for (id, ends) in (1..).zip([["app", "db"], ["web", "app"], ["web", "cache"], ["app", "db"]]) {
        all.put(&RelationView { id: RelationId(id), ..related(&ends) });
    }
    let first = |one: &str, from: &str| {
        let found = all.first_related(&one.parse().unwrap(), &from.parse().unwrap());
        found.map(ToString::to_string)
    };
    for (from, expected) in [("a", "db"), ("db", "db"), ("db2", "web"), ("web", "web")] {
        assert_eq!(first("app", from).as_deref(), Some(expected), "from {from}");
    }
    assert_eq!(first("app", "x"), None);
    assert_eq!(first("app0", "a"), None, "those of the next application are not meant");
}

fn any_range() -> impl Strategy<Value = PortRange> {
    let transport = prop_oneof![Just(Transport::Tcp), Just(Transport::Udp)];
    let ports = (transport, 0_u16..40, 0_u16..40);
    let ports = ports.prop_map(|(transport, one, other)| {
        PortRange::new(transport, one.min(other), one.max(other)).unwrap()
    });
    prop_oneof![9 => ports, 1 => Just(PortRange::ICMP)]
}

fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0_u8..4).prop_map(|last| IpAddr::from([10, 0, 0, last])),
        (0_u16..4).prop_map(|last| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, last])),
    ]
}

fn any_subnets() -> impl Strategy<Value = BTreeSet<Subnet>> {
    let one = (any_address(), 0_u8..=128).prop_filter_map("too long", |(at, bits)| Subnet::around(at, bits));
    proptest::collection::btree_set(one, 0..4)
}

proptest! {
    /// A host is admitted exactly if one rule has its address, its transport and the port; a unit of the same model is
    /// never refused where its host is admitted; and no rule is needed within an application and between related ones.
    #[test]
    fn a_host_is_admitted_exactly_by_a_rule_that_has_it(
        rules in btree_map(any_range(), any_subnets(), 0..6),
        from in any_address(),
        port in 0_u16..40,
        tcp in any::<bool>(),
    ) {
        let transport = if tcp { Transport::Tcp } else { Transport::Udp };
        let mut pairs = rules.iter().flat_map(|(range, from)| from.iter().map(move |subnet| (range, subnet)));
        let asked = PortRange::new(transport, port, port).unwrap();
        let expected = pairs.any(|(range, subnet)| range.overlaps(&asked) && subnet.contains(from));
        let admitted = |origin: ConnectionOrigin| origin.admit(&rules, transport, port).is_ok();
        prop_assert_eq!(admitted(ConnectionOrigin::Host(from)), expected);
        prop_assert_eq!(admitted(ConnectionOrigin::OtherUnit(from)), expected);
        prop_assert!(admitted(ConnectionOrigin::SameApplication));
        prop_assert!(admitted(ConnectionOrigin::RelatedApplication));
        if let IpAddr::V4(from) = from {
            let mapped = IpAddr::from(from.to_ipv6_mapped());
            prop_assert_eq!(admitted(ConnectionOrigin::Host(mapped)), expected);
        }
    }
}
