//! The agent's table in the kernel. For each packet to this host it comes to one of:
//!
//! - not its business, and the packet goes on: it came by the loopback, it answers what this host began, or no unit has
//!   its port open;
//! - admitted, and the packet goes on: its sender may reach the port;
//! - dropped.
//!
//! The table drops no ICMP but pings, and these only if a unit has `icmp` open: errors and neighbour discovery go on.
//!
//! A change of the rules is a change of the sets' elements: a transaction deletes and adds those that differ. The table is
//! made anew where its chains change, and where the kernel has other rules or elements than this process wrote. Each
//! transaction is for the generation of tables that was looked at, so that it meets no other ones.

use std::{collections::BTreeSet, io, net::IpAddr};

use periapt_host_api::{network::Subnet, ports::Transport};
use periapt_netlink::{
    ChainPlace, FilterExpression, FilterFamily, FilterGeneration, FilterRegister, FilterSet, FilterTable,
    FilterTransaction, FilterVerdict, PacketHeader, SetField, SetInterval, ValueComparison,
};

use super::{
    error::FirewallError,
    rules::{FirewallRules, PortInterval},
};

/// The chains: the one that the kernel evaluates, and those for packets to governed ports and for pings.
const INPUT: &str = "input";
const PORTS: &str = "ports";
const PINGS: &str = "pings";

/// The sets: governed ports, and admitted senders with the ports that they may reach.
const GOVERNED: &str = "governed";
const ADMITTED_IPV4: &str = "admitted-ipv4";
const ADMITTED_IPV6: &str = "admitted-ipv6";

const TCP: u8 = 6;
const UDP: u8 = 17;

/// The index of the loopback in each network.
const LOOPBACK: u32 = 1;

/// The direction of packets that answer.
const REPLY: u8 = 1;

/// The most attempts at one change, each of which other programs may overtake.
const ATTEMPTS: usize = 8;

/// The first register of rules' expressions.
const FIRST: FilterRegister = FilterRegister::FIRST;

/// A version of the Internet protocol.
struct Version {
    /// The number of its family.
    family: u8,
    /// The number of its ICMP, and the kind of a ping there.
    icmp: u8,
    ping: u8,
    /// The place and the length of the sender's address.
    sender: u32,
    length: u32,
    /// The set of admitted senders.
    admitted: &'static str,
    address: SetField,
}

const VERSIONS: [Version; 2] = [
    Version {
        family: 2,
        icmp: 1,
        ping: 8,
        sender: 12,
        length: 4,
        admitted: ADMITTED_IPV4,
        address: SetField::Ipv4Address,
    },
    Version {
        family: 10,
        icmp: 58,
        ping: 128,
        sender: 8,
        length: 16,
        admitted: ADMITTED_IPV6,
        address: SetField::Ipv6Address,
    },
];

/// The agent's table.
#[derive(Debug)]
pub(super) struct HostTable {
    name: String,
    state: TableState,
}

#[derive(Debug)]
enum TableState {
    /// It is as an agent before left it, if it is there.
    Unknown,
    /// It has had these rules at this generation. As long as no other one has begun, it has them.
    Holds(FirewallRules, FilterGeneration),
    /// It is deleted for good.
    Removed,
}

/// The change by which a table came to hold some rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableChange {
    /// It holds them already, or is deleted for good.
    Nothing,
    /// Some elements were added, and some deleted.
    Elements { added: usize, deleted: usize },
    /// It was made anew, or deleted because there are no rules.
    Whole,
}

impl HostTable {
    /// Names a table, of which nothing is read.
    pub(super) fn new(name: String) -> Self {
        Self { name, state: TableState::Unknown }
    }

    /// Has the table hold these rules, and nothing else. Without rules there is no table.
    pub(super) fn hold(&mut self, rules: &FirewallRules) -> Result<TableChange, FirewallError> {
        let mut held = self.try_to_hold(rules);
        for _ in 1..ATTEMPTS {
            match &held {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => held = self.try_to_hold(rules),
                _ => break,
            }
        }
        let change = held?;
        if change != TableChange::Nothing {
            let (governed, admitted) = (rules.governed.len(), rules.admitted.len());
            let table = self.name.as_str();
            tracing::info!(table, governed, admitted, ?change, "the host's firewall has the agent's rules");
        }
        Ok(change)
    }

    /// As [`Self::hold`]; fails with [`io::ErrorKind::Interrupted`] if another program has changed tables meanwhile.
    fn try_to_hold(&mut self, rules: &FirewallRules) -> io::Result<TableChange> {
        if matches!(self.state, TableState::Removed) {
            return Ok(TableChange::Nothing);
        }
        let generation = FilterGeneration::now()?;
        let (table, present) = (table(&self.name), self.present(generation));
        if present == Some(rules) {
            self.state = TableState::Holds(rules.clone(), generation);
            return Ok(TableChange::Nothing);
        }
        let difference = present.and_then(|present| Difference::between(present, rules));
        let change = match difference.map(|difference| difference.write(table, generation)) {
            Some(Ok(change)) => change,
            Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            Some(Err(_)) | None => {
                replacement(table, rules).commit_at(generation)?;
                TableChange::Whole
            }
        };
        // The kernel begins no generation for an empty transaction.
        let is_empty = matches!(change, TableChange::Elements { added: 0, deleted: 0 });
        let written = if is_empty { generation } else { generation.after_one() };
        self.state = TableState::Holds(rules.clone(), written);
        Ok(change)
    }

    /// Returns the rules that the table has at a generation; none if this process does not know.
    fn present(&self, generation: FilterGeneration) -> Option<&FirewallRules> {
        let TableState::Holds(rules, written) = &self.state else { return None };
        if *written == generation || has(table(&self.name), rules) {
            return Some(rules);
        }
        tracing::warn!(
            table = self.name,
            "another program changed or deleted the agent's rules in the host's firewall"
        );
        None
    }

    /// Deletes the table for good, if it is there.
    pub(super) fn remove(&mut self) -> Result<(), FirewallError> {
        self.state = TableState::Removed;
        let mut transaction = FilterTransaction::default();
        transaction.delete_table_if_any(table(&self.name));
        Ok(transaction.commit()?)
    }
}

/// Makes a table with rules of each kind and deletes it in one transaction, which shows whether this process and the
/// kernel can. No packet meets it.
///
/// # Errors
/// They cannot.
pub fn try_firewall() -> Result<(), FirewallError> {
    let name = format!("periapt-trial-{}", std::process::id());
    let rules = FirewallRules {
        governed: vec![PortInterval { transport: Transport::Tcp, first: 1, last: 2 }],
        pings: Some(Subnet::EVERYWHERE.to_vec()),
        ..FirewallRules::default()
    };
    let mut transaction = replacement(table(&name), &rules);
    transaction.delete_table(table(&name));
    Ok(transaction.commit()?)
}

fn table(name: &str) -> FilterTable<'_> {
    FilterTable { family: FilterFamily::Inet, name }
}

/// Returns the transaction after which a table has these rules, whatever it had before.
fn replacement(table: FilterTable<'_>, rules: &FirewallRules) -> FilterTransaction {
    let mut transaction = FilterTransaction::default();
    transaction.delete_table_if_any(table);
    if rules.is_empty() {
        return transaction;
    }
    transaction.create_table(table);
    add_sets(&mut transaction, table, rules);
    transaction.create_base_chain(table, INPUT, ChainPlace::Input);
    let from_loopback = vec![FilterExpression::interface(FIRST), equal(&LOOPBACK.to_ne_bytes()), accept()];
    transaction.add_rule(table, INPUT, from_loopback);
    if rules.pings.is_some() {
        add_pings(&mut transaction, table);
    }
    add_ports(&mut transaction, table);
    transaction
}

/// Returns the chain of each rule that a replacement adds.
fn chains(rules: &FirewallRules) -> Vec<&'static str> {
    let pings: &[&'static str] = match rules.pings {
        Some(_) => &[INPUT, INPUT, PINGS, PINGS, PINGS],
        None => &[],
    };
    [&[INPUT, INPUT, PORTS, PORTS, PORTS, PORTS][..], pings].concat()
}

/// Returns true if the kernel has the rules and elements of a replacement, and no others. A table that cannot be read has
/// others.
fn has(table: FilterTable<'_>, rules: &FirewallRules) -> bool {
    if rules.is_empty() {
        return table.exists().is_ok_and(|exists| !exists);
    }
    let mut expected = chains(rules);
    expected.sort_unstable();
    let has_chains = table.rules().is_ok_and(|mut chains| {
        chains.sort_unstable();
        chains == expected
    });
    let has_set = |(set, wanted): (&str, Vec<SetInterval>)| {
        let wanted: BTreeSet<_> = wanted.into_iter().collect();
        table.elements(set).is_ok_and(|elements| elements == Some(wanted))
    };
    has_chains && elements(rules).into_iter().all(has_set)
}

/// The elements by which two tables with the same chains differ, of each set.
struct Difference(Vec<ChangedSet>);

struct ChangedSet {
    name: &'static str,
    added: Vec<SetInterval>,
    deleted: Vec<SetInterval>,
}

impl Difference {
    /// Returns the difference; none if the tables differ in more than elements.
    fn between(present: &FirewallRules, wanted: &FirewallRules) -> Option<Self> {
        let has_same_chains =
            !present.is_empty() && !wanted.is_empty() && present.pings.is_some() == wanted.pings.is_some();
        let changed = |((name, present), (_, wanted)): (NamedElements, NamedElements)| {
            let [present, wanted] =
                [present, wanted].map(|elements| elements.into_iter().collect::<BTreeSet<_>>());
            let added = wanted.difference(&present).cloned().collect();
            let deleted = present.difference(&wanted).cloned().collect();
            ChangedSet { name, added, deleted }
        };
        let sets = || elements(present).into_iter().zip(elements(wanted)).map(changed).collect();
        has_same_chains.then(|| Self(sets()))
    }

    /// Deletes and adds elements in one transaction.
    fn write(self, table: FilterTable<'_>, generation: FilterGeneration) -> io::Result<TableChange> {
        let mut transaction = FilterTransaction::default();
        // New elements may overlap those that go.
        for ChangedSet { name, deleted, .. } in &self.0 {
            transaction.delete_elements(table, name, deleted);
        }
        for ChangedSet { name, added, .. } in &self.0 {
            transaction.add_elements(table, name, added);
        }
        transaction.commit_at(generation)?;
        let count = |of: fn(&ChangedSet) -> usize| -> usize { self.0.iter().map(of).sum() };
        Ok(TableChange::Elements {
            added: count(|set| set.added.len()),
            deleted: count(|set| set.deleted.len()),
        })
    }
}

/// The name of a set, and its elements.
type NamedElements = (&'static str, Vec<SetInterval>);

/// Returns the elements of each set.
fn elements(rules: &FirewallRules) -> [NamedElements; 3] {
    let governed = rules.governed.iter().map(|interval| element(*interval, None)).collect();
    let [v4, v6] = VERSIONS.map(|version| (version.admitted, version.admitted_elements(rules)));
    [(GOVERNED, governed), v4, v6]
}

fn add_sets(transaction: &mut FilterTransaction, table: FilterTable<'_>, rules: &FirewallRules) {
    let [v4, v6] = VERSIONS.map(|version| version.address);
    let fields: [&[SetField]; 3] = [
        &[SetField::Protocol, SetField::Port],
        &[v4, SetField::Protocol, SetField::Port],
        &[v6, SetField::Protocol, SetField::Port],
    ];
    for ((name, elements), fields) in elements(rules).into_iter().zip(fields) {
        transaction.create_set(table, FilterSet { name, fields }, &elements);
    }
}

/// Adds the rules for packets to governed ports.
fn add_ports(transaction: &mut FilterTransaction, table: FilterTable<'_>) {
    transaction.create_chain(table, PORTS);
    let to_governed = vec![
        FilterExpression::protocol(FIRST),
        port(FIRST.after(1)),
        FilterExpression::is_in(GOVERNED, FIRST),
        FilterExpression::verdict(FilterVerdict::Jump(PORTS)),
    ];
    transaction.add_rule(table, INPUT, to_governed);
    // This host may have begun a connection from a port that a unit has open.
    let answers = vec![FilterExpression::direction(FIRST), equal(&[REPLY]), accept()];
    transaction.add_rule(table, PORTS, answers);
    for version in &VERSIONS {
        transaction.add_rule(table, PORTS, version.admits(port));
    }
    transaction.add_rule(table, PORTS, vec![FilterExpression::verdict(FilterVerdict::Drop)]);
}

/// Adds the rules for pings.
fn add_pings(transaction: &mut FilterTransaction, table: FilterTable<'_>) {
    transaction.create_chain(table, PINGS);
    for version in &VERSIONS {
        let pings = vec![
            FilterExpression::family(FIRST),
            equal(&[version.family]),
            FilterExpression::protocol(FIRST),
            equal(&[version.icmp]),
            FilterExpression::payload(PacketHeader::Transport, 0, 1, FIRST),
            equal(&[version.ping]),
            FilterExpression::verdict(FilterVerdict::Jump(PINGS)),
        ];
        transaction.add_rule(table, INPUT, pings);
        let no_port = |into| FilterExpression::value(&0_u16.to_be_bytes(), into);
        transaction.add_rule(table, PINGS, version.admits(no_port));
    }
    transaction.add_rule(table, PINGS, vec![FilterExpression::verdict(FilterVerdict::Drop)]);
}

impl Version {
    /// Returns the elements of its admitted senders.
    fn admitted_elements(&self, rules: &FirewallRules) -> Vec<SetInterval> {
        let is_of_version =
            |subnet: &Subnet| subnet.first().is_ipv4() == (self.address == SetField::Ipv4Address);
        let ports = rules.admitted.iter().filter(|(_, subnet)| is_of_version(subnet));
        let ports = ports.map(|(interval, subnet)| element(*interval, Some(subnet)));
        // Pings are senders of ICMP to the port 0, which it has not.
        let pings = rules.pings.iter().flatten().filter(|subnet| is_of_version(subnet));
        let pings = pings.map(|subnet| joined(Some(subnet), self.icmp, (0, 0)));
        ports.chain(pings).collect()
    }

    /// Returns the rule that accepts packets of admitted senders, to the port that an expression loads.
    fn admits(&self, port: impl Fn(FilterRegister) -> FilterExpression) -> Vec<FilterExpression> {
        let words = self.length / 4;
        vec![
            FilterExpression::family(FIRST),
            equal(&[self.family]),
            FilterExpression::payload(PacketHeader::Network, self.sender, self.length, FIRST),
            FilterExpression::protocol(FIRST.after(words)),
            port(FIRST.after(words + 1)),
            FilterExpression::is_in(self.admitted, FIRST),
            accept(),
        ]
    }
}

/// Loads the port that a packet of TCP or UDP is for. Other protocols have other bytes there, and no elements in sets.
fn port(into: FilterRegister) -> FilterExpression {
    FilterExpression::payload(PacketHeader::Transport, 2, 2, into)
}

fn equal(value: &[u8]) -> FilterExpression {
    FilterExpression::compare(FIRST, ValueComparison::Equal, value)
}

fn accept() -> FilterExpression {
    FilterExpression::verdict(FilterVerdict::Accept)
}

/// Returns an interval as an element of a set, with senders or without.
fn element(PortInterval { transport, first, last }: PortInterval, from: Option<&Subnet>) -> SetInterval {
    let protocol = match transport {
        Transport::Tcp => TCP,
        Transport::Udp => UDP,
    };
    joined(from, protocol, (first, last))
}

fn joined(from: Option<&Subnet>, protocol: u8, (first, last): (u16, u16)) -> SetInterval {
    let senders = from.map(|subnet| (octets(subnet.first()), octets(subnet.last())));
    let (protocol, first, last) = ([protocol], first.to_be_bytes(), last.to_be_bytes());
    let mut fields: Vec<(&[u8], &[u8])> = Vec::new();
    fields.extend(senders.as_ref().map(|(first, last)| (first.as_slice(), last.as_slice())));
    fields.extend([(&protocol[..], &protocol[..]), (&first[..], &last[..])]);
    SetInterval::new(&fields)
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests;
