//! Opening and closing ports.

use periapt_hook::{CallError, Ports};
use periapt_host_api::commit::{PortChanges, PortRequest};

use crate::world::World;

fn request(range: &str, endpoint: Option<&str>) -> PortRequest {
    PortRequest { range: range.parse().unwrap(), endpoint: endpoint.map(|name| name.parse().unwrap()) }
}

#[test]
fn j01_a_port_is_listed_in_the_hook_that_opens_it() {
    let mut hook = World::new().start();
    hook.check(&[
        ("opened-ports", ""),
        ("opened-ports --format=json", "[]\n"),
        ("open-port 80", ""),
        ("open-port 8000-8999/udp", ""),
        ("open-port 443/tcp", ""),
        ("opened-ports", "80/tcp\n443/tcp\n8000-8999/udp\n"),
        (
            "opened-ports --format=json --endpoints",
            "[\"80/tcp (*)\",\"443/tcp (*)\",\"8000-8999/udp (*)\"]\n",
        ),
        ("close-port 80/tcp", ""),
        ("opened-ports", "443/tcp\n8000-8999/udp\n"),
    ]);
    let ports = hook.finish().effects.ports;
    let open = [request("443", None), request("8000-8999/udp", None)];
    assert_eq!(ports, PortChanges { open: open.into(), close: [].into() });
}

#[test]
fn j02_a_range_that_overlaps_one_of_this_hook_is_refused() {
    let mut hook = World::new().start();
    hook.check(&[("open-port 100-200", ""), ("open-port 100-200", ""), ("open-port 50-100/udp", "")]);
    hook.check_errors(&[(
        "open-port 50-100",
        1,
        "cannot open 50-100/tcp (unit \"a/0\"): port range conflicts with 100-200/tcp (unit \"a/0\") requested earlier",
    )]);
}

#[test]
fn a_range_that_overlaps_an_open_one_of_the_unit_is_refused() {
    let mut world = World::new();
    world.opened("a/0", &[("100-200", &[])]);
    let mut hook = world.start();
    hook.check_errors(&[
        (
            "open-port 50-100",
            1,
            "cannot open 50-100/tcp (unit \"a/0\"): port range conflicts with 100-200/tcp (unit \"a/0\")",
        ),
        (
            "close-port 150",
            1,
            "cannot close 150/tcp (unit \"a/0\"): port range conflicts with 100-200/tcp (unit \"a/0\")",
        ),
    ]);
    hook.check(&[("close-port 100-200", ""), ("open-port 50-100", ""), ("opened-ports", "50-100/tcp\n")]);
    let ports = hook.finish().effects.ports;
    let (open, close) = ([request("50-100", None)], [request("100-200", None)]);
    assert_eq!(ports, PortChanges { open: open.into(), close: close.into() });
}

#[test]
fn j03_another_unit_of_the_machine_keeps_its_ports() {
    let mut world = World::new();
    world.opened("z/3", &[("80", &["web"]), ("1000-1999", &[])]);
    let mut hook = world.start();
    let conflict = |verb: &str, range: &str, with: &str| {
        format!("cannot {verb} {range} (unit \"a/0\"): port range conflicts with {with} (unit \"z/3\")")
    };
    hook.check_errors(&[
        ("open-port 80", 1, &conflict("open", "80/tcp", "80/tcp")),
        ("open-port --endpoints web 1500", 1, &conflict("open", "1500/tcp", "1000-1999/tcp")),
        ("close-port 80", 1, &conflict("close", "80/tcp", "80/tcp")),
    ]);
    hook.check(&[("open-port 80/udp", ""), ("opened-ports", "80/udp\n")]);
    let typed = hook.context.open_ports(Ports::Tcp(70, 90), &[]);
    assert_eq!(typed, Err(CallError::Conflict(conflict("open", "70-90/tcp", "80/tcp"))));
}

#[test]
fn j04_one_range_may_be_open_for_several_endpoints() {
    let mut world = World::new();
    world.opened("a/0", &[("80", &["db"])]);
    let mut hook = world.start();
    hook.check(&[
        ("open-port 80 --endpoints web", ""),
        ("opened-ports --endpoints", "80/tcp (db, web)\n"),
        ("open-port 81 --endpoints web,ring", ""),
        ("opened-ports", "80/tcp\n81/tcp\n"),
        ("close-port 80 --endpoints db", ""),
        ("close-port 81 --endpoints web", ""),
        ("opened-ports --endpoints", "80/tcp (web)\n81/tcp (ring)\n"),
        ("open-port 80 --endpoints ''", ""),
        ("close-port --endpoints web 80", ""),
        ("opened-ports --endpoints", "80/tcp (db, ring)\n81/tcp (ring)\n"),
    ]);
    hook.check_errors(&[("open-port 80 --endpoints web,x", 1, "endpoint \"x\" not found")]);
}

#[test]
fn j05_each_mistake_has_its_own_message() {
    let mut hook = World::new().start();
    hook.check_errors(&[
        ("open-port", 2, "no port or range specified"),
        ("open-port 80-20", 2, "invalid port range 80-20/tcp"),
        ("open-port 70000", 2, "port range bounds must be between 0 and 65535, got 70000-70000"),
        ("open-port 80/sctp", 2, "invalid protocol \"sctp\", expected \"tcp\", \"udp\", or \"icmp\""),
        ("open-port x", 2, "invalid port \"x\""),
        ("open-port 1-2-3", 2, "invalid port range \"1-2-3\""),
        ("close-port 80/icmp", 2, "protocol \"icmp\" doesn't support any ports; got \"80\""),
        ("open-port 80 81", 2, "unrecognized args: [\"81\"]"),
    ]);
    let reversed = hook.context.close_ports(Ports::Udp(9, 1), &[]);
    assert_eq!(reversed, Err(CallError::InvalidArgument("invalid port range 9-1/udp".to_owned())));
    assert!(hook.finish().effects.is_empty());
}

#[test]
fn j06_icmp_is_taken_in_any_letter_case() {
    let mut hook = World::new().start();
    hook.check(&[("open-port ICMP", ""), ("open-port icmp", ""), ("opened-ports", "icmp\n")]);
    assert_eq!(hook.context.opened_ports().len(), 1);
}

#[test]
fn opposite_requests_cancel_out() {
    let mut world = World::new();
    world.opened("a/0", &[("443", &[])]);
    let mut hook = world.start();
    hook.check(&[
        ("open-port 80", ""),
        ("close-port 80", ""),
        ("close-port 443", ""),
        ("open-port 443", ""),
        ("close-port 22", ""),
    ]);
    assert!(hook.finish().effects.is_empty());
}

#[test]
fn open_ranges_are_bounded() {
    let mut hook = World::new().limits(|limits| limits.port_ranges = 2).start();
    hook.check(&[("open-port 1", ""), ("open-port 2", ""), ("open-port 2", "")]);
    hook.check_errors(&[("open-port 3", 1, "unit a/0 would have 3 port ranges open; at most 2 are allowed")]);
    let mut hook = World::new().limits(|limits| limits.effect_bytes = 1_000).start();
    let flood = (0..100).find_map(|_| {
        hook.context
            .open_ports(Ports::Tcp(1, 1), &[])
            .and(hook.context.close_ports(Ports::Tcp(1, 1), &[]))
            .err()
    });
    assert!(matches!(flood, Some(CallError::LimitExceeded(_))), "opening and closing without end ends");
}
