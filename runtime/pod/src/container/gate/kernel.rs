//! The gate's orders to the kernel: a route by which all addresses are the loopback's, and rules that redirect. Both go
//! over netlink, in the form that the kernel documents (`linux/netfilter/nf_tables.h`, `linux/rtnetlink.h`).

use std::{io, net::Ipv4Addr, os::fd::OwnedFd};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// The flags of an order: a request that is answered, and that makes something new.
const REQUEST: u16 = 0x1;
const ANSWERED: u16 = 0x4;
const NEW: u16 = 0x400;
const LAST: u16 = 0x800;

/// The kinds of messages.
const ERROR: u16 = 2;
const BEGIN: u16 = 0x10;
const END: u16 = 0x11;
const NEW_ROUTE: u16 = 24;
const TABLES: u16 = 10 << 8;
const NEW_TABLE: u16 = TABLES;
const NEW_CHAIN: u16 = TABLES | 3;
const NEW_RULE: u16 = TABLES | 6;

/// The mark of an attribute that consists of others.
const NESTED: u16 = 0x8000;

/// The register in which a rule's expressions keep what they look at.
const REGISTER: u32 = 1;

const IPV4: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The port of name servers.
const NAMES: u16 = 53;

/// The name of both table and chain.
const NAME: &[u8] = b"gate\0";

/// Redirects TCP connections to addresses that are not of the loopback to one port of it, and questions for names to
/// another one.
pub(super) fn redirect(connections: u16, questions: u16) -> io::Result<()> {
    let table = attribute(1, NAME);
    // Output, before all that other tables may do.
    let hook = nested(4, &[attribute(1, &3_u32.to_be_bytes()), attribute(2, &(-100_i32).to_be_bytes())]);
    let chain = [attribute(1, NAME), attribute(3, NAME), hook, attribute(7, b"nat\0")].concat();
    let orders = [
        message(BEGIN, REQUEST, 0, &header(0, 10)),
        message(NEW_TABLE, REQUEST | ANSWERED | NEW, 1, &[header(IPV4, 0), table].concat()),
        message(NEW_CHAIN, REQUEST | ANSWERED | NEW, 2, &[header(IPV4, 0), chain].concat()),
        rule(3, &[protocol(TCP), is_outside(), redirection(connections)]),
        rule(4, &[protocol(UDP), is_outside(), to_port(NAMES), redirection(questions)]),
        message(END, REQUEST, 5, &header(0, 10)),
    ];
    ask(Some(netlink::NETFILTER), &orders.concat(), 4)?;
    // The protocol of routes is the first one, which has no number.
    ask(None, &route(), 1)
}

/// Returns the order for a route by which each address is this host's, with the loopback's as the source.
fn route() -> Vec<u8> {
    let (local_table, local, of_host, by_boot, loopback) = (255, 2, 254, 3, 1_u32);
    let mut route = vec![IPV4, 0, 0, 0, local_table, by_boot, of_host, local];
    route.extend([0; 4]);
    route.extend(attribute(4, &loopback.to_ne_bytes()));
    route.extend(attribute(7, &Ipv4Addr::LOCALHOST.octets()));
    message(NEW_ROUTE, REQUEST | ANSWERED | NEW, 1, &route)
}

fn rule(number: u32, expressions: &[Vec<u8>]) -> Vec<u8> {
    let rule = [header(IPV4, 0), attribute(1, NAME), attribute(2, NAME), nested(4, expressions)].concat();
    message(NEW_RULE, REQUEST | ANSWERED | NEW | LAST, number, &rule)
}

/// Compares the protocol.
fn protocol(of: u8) -> Vec<u8> {
    let key: u32 = 16;
    let load = expression("meta", &[number(1, REGISTER), number(2, key)]);
    [load, compared(Comparison::Equal, &[of])].concat()
}

/// Compares the network of the destination: it must not be the loopback's.
fn is_outside() -> Vec<u8> {
    let (base, place, length): (u32, u32, u32) = (1, 16, 4);
    let load =
        expression("payload", &[number(1, REGISTER), number(2, base), number(3, place), number(4, length)]);
    let (mask, nothing) = ([255, 0, 0, 0], [0; 4]);
    let network = expression(
        "bitwise",
        &[
            number(1, REGISTER),
            number(2, REGISTER),
            number(3, length),
            nested(4, &[attribute(1, &mask)]),
            nested(5, &[attribute(1, &nothing)]),
        ],
    );
    [load, network, compared(Comparison::Different, &[127, 0, 0, 0])].concat()
}

/// Compares the port of the destination.
fn to_port(port: u16) -> Vec<u8> {
    let (base, place, length): (u32, u32, u32) = (2, 2, 2);
    let load =
        expression("payload", &[number(1, REGISTER), number(2, base), number(3, place), number(4, length)]);
    [load, compared(Comparison::Equal, &port.to_be_bytes())].concat()
}

fn redirection(port: u16) -> Vec<u8> {
    let port =
        expression("immediate", &[number(1, REGISTER), nested(2, &[attribute(1, &port.to_be_bytes())])]);
    [port, expression("redir", &[number(1, REGISTER)])].concat()
}

/// The kinds of comparisons.
#[derive(Debug, Clone, Copy)]
enum Comparison {
    Equal = 0,
    Different = 1,
}

fn compared(how: Comparison, with: &[u8]) -> Vec<u8> {
    expression("cmp", &[number(1, REGISTER), number(2, how as u32), nested(3, &[attribute(1, with)])])
}

/// Returns one expression, as an element of a rule's list.
fn expression(name: &str, data: &[Vec<u8>]) -> Vec<u8> {
    nested(1, &[attribute(1, &[name.as_bytes(), b"\0"].concat()), nested(2, data)])
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &parts.concat())
}

fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len() + 4).unwrap_or(u16::MAX);
    let mut attribute = [&length.to_ne_bytes()[..], &kind.to_ne_bytes()[..], content].concat();
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

/// Returns the header of a message about packets.
fn header(family: u8, resource: u16) -> Vec<u8> {
    [&[family, 0][..], &resource.to_be_bytes()[..]].concat()
}

fn message(kind: u16, flags: u16, number: u32, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 16).unwrap_or(u32::MAX);
    [
        &length.to_ne_bytes()[..],
        &kind.to_ne_bytes()[..],
        &flags.to_ne_bytes()[..],
        &number.to_ne_bytes()[..],
        &0_u32.to_ne_bytes()[..],
        content,
    ]
    .concat()
}

/// Sends orders to the kernel, and waits until so many are carried out.
fn ask(protocol: Option<Protocol>, orders: &[u8], answers: usize) -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    send(&socket, orders, SendFlags::empty())?;
    let mut left = answers;
    while left > 0 {
        left = left.saturating_sub(hear(&socket)?);
    }
    Ok(())
}

/// Returns the number of orders that were carried out, of the next answers. The kernel answers each order at once.
fn hear(socket: &OwnedFd) -> io::Result<usize> {
    let mut buffer = vec![0; 8 << 10];
    let (length, _) = recv(socket, buffer.as_mut_slice(), RecvFlags::empty())?;
    buffer.truncate(length);
    let mut rest = buffer.as_slice();
    let mut carried_out = 0;
    while let (Some(length), Some(kind)) = (rest.first_chunk().copied(), rest.get(4..6)) {
        if kind == ERROR.to_ne_bytes() {
            let code =
                rest.get(16..).and_then(|rest| rest.first_chunk().copied()).map_or(0, i32::from_ne_bytes);
            if code != 0 {
                return Err(io::Error::from_raw_os_error(-code));
            }
            carried_out += 1;
        }
        let length = usize::try_from(u32::from_ne_bytes(length)).unwrap_or(usize::MAX).max(16);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(carried_out)
}
