//! The rules for a host, as intervals that do not overlap: a pure function of its machines' open ports.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use periapt_host_api::{
    UnitName,
    network::Subnet,
    ports::{PortRange, Transport},
};

use super::ports::MachinePorts;

/// The most intervals of a host's rules. The kernel's time for a packet hardly grows with them, but its memory does.
pub(super) const MAX_RULES: usize = 1_024;

/// The most pairs of a range and a subnet from which rules are made. Ranges that touch become one interval.
const MAX_PAIRS: usize = 4 * MAX_RULES;

/// The error of units with too many ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the open ports of this host's units need more than {MAX_RULES} rules of its firewall: close some of the {ranges} \
     ranges of {unit}, or admit fewer subnets (`periapt expose --to-cidrs`)"
)]
pub struct TooManyRules {
    unit: UnitName,
    ranges: usize,
}

/// An interval of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortInterval {
    pub(super) transport: Transport,
    pub(super) first: u16,
    pub(super) last: u16,
}

/// The rules for a host. Packets to other ports are no matter of theirs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FirewallRules {
    /// The ports to which packets are dropped that are not admitted. No two intervals overlap.
    pub(super) governed: Vec<PortInterval>,
    /// The senders that are admitted to some of these ports. No two overlap in both.
    pub(super) admitted: Vec<(PortInterval, Subnet)>,
    /// The senders whose pings are admitted, which do not overlap; none if all are.
    pub(super) pings: Option<Vec<Subnet>>,
}

impl FirewallRules {
    /// Returns the rules for some machines of one host. Ports of several are admitted if any machine admits them. No rule is
    /// about ports that are to stay untouched.
    ///
    /// # Errors
    /// There are too many.
    pub(super) fn new(
        machines: &[&MachinePorts],
        untouched: &BTreeSet<PortRange>,
    ) -> Result<Self, TooManyRules> {
        let too_many = || {
            let open = machines.iter().flat_map(|machine| &machine.open);
            let most = open.max_by_key(|(_, ranges)| ranges.len());
            let (unit, ranges) = most.map(|(unit, ranges)| (unit.clone(), ranges.len()))?;
            Some(TooManyRules { unit, ranges })
        };
        let mut rules = Self::default();
        match rules.fill(machines, untouched) {
            Ok(()) => Ok(rules),
            // Without open ports there are no rules, however many subnets are admitted.
            Err(Full) => too_many().map_or_else(|| Ok(Self::default()), Err),
        }
    }

    /// Returns true if there are no rules, and every packet goes on.
    pub(super) fn is_empty(&self) -> bool {
        self.governed.is_empty() && self.pings.is_none()
    }

    fn fill(&mut self, machines: &[&MachinePorts], untouched: &BTreeSet<PortRange>) -> Result<(), Full> {
        let open: BTreeSet<PortRange> =
            machines.iter().flat_map(|machine| machine.open.values().flatten().copied()).collect();
        if open.len() > MAX_PAIRS {
            return Err(Full);
        }
        let admitted = machines.iter().flat_map(|machine| &machine.admitted);
        let admitted: Vec<(PortRange, Subnet)> = admitted
            // Modes that open ports of other machines concern no port that is not open here.
            .filter(|(range, _)| open.iter().any(|open| open.overlaps(range)))
            .flat_map(|(range, from)| from.iter().map(move |subnet| (*range, *subnet)))
            .take(MAX_PAIRS + 1)
            .collect();
        if open.len() + admitted.len() > MAX_PAIRS {
            return Err(Full);
        }
        if open.contains(&PortRange::ICMP) && !untouched.contains(&PortRange::ICMP) {
            let of_pings = admitted.iter().filter(|(range, _)| *range == PortRange::ICMP);
            let pings = apart(of_pings.map(|(_, subnet)| *subnet));
            self.has_room_for(pings.len())?;
            self.pings = Some(pings);
        }
        for transport in [Transport::Tcp, Transport::Udp] {
            let mut edges = Edges::of(transport);
            open.iter().for_each(|range| edges.add(range, Subject::Open));
            untouched.iter().for_each(|range| edges.add(range, Subject::Untouched));
            admitted.iter().for_each(|(range, from)| edges.add(range, Subject::Admitted(*from)));
            self.sweep(edges)?;
        }
        Ok(())
    }

    /// Adds the rules for the ports of one transport, from the lowest to the highest.
    fn sweep(&mut self, Edges { transport, changes }: Edges) -> Result<(), Full> {
        let mut present: BTreeMap<Subject, usize> = BTreeMap::new();
        let mut last: Option<(PortInterval, Vec<Subnet>)> = None;
        let mut from = 0;
        for (at, changes) in changes {
            if at > from && present.contains_key(&Subject::Open) && !present.contains_key(&Subject::Untouched)
            {
                let subnets = present.keys().filter_map(|subject| match subject {
                    Subject::Admitted(subnet) => Some(*subnet),
                    Subject::Open | Subject::Untouched => None,
                });
                let subnets = apart(subnets);
                let interval = interval(transport, from, at - 1);
                match last.take() {
                    Some((before, same)) if before.touches(interval) && same == subnets => {
                        last = Some((PortInterval { last: interval.last, ..before }, same));
                    }
                    done => {
                        done.map_or(Ok(()), |done| self.add(done))?;
                        last = Some((interval, subnets));
                    }
                }
            }
            for (subject, edge) in changes {
                let count = present.entry(subject).or_default();
                *count = match edge {
                    Edge::Begins => count.saturating_add(1),
                    Edge::Ends => count.saturating_sub(1),
                };
                if *count == 0 {
                    present.remove(&subject);
                }
            }
            from = at;
        }
        last.map_or(Ok(()), |done| self.add(done))
    }

    fn add(&mut self, (interval, subnets): (PortInterval, Vec<Subnet>)) -> Result<(), Full> {
        self.has_room_for(subnets.len() + 1)?;
        match self.governed.last_mut() {
            Some(before) if before.touches(interval) => before.last = interval.last,
            _ => self.governed.push(interval),
        }
        self.admitted.extend(subnets.into_iter().map(|subnet| (interval, subnet)));
        Ok(())
    }

    fn has_room_for(&self, more: usize) -> Result<(), Full> {
        let pings = self.pings.as_ref().map_or(0, Vec::len);
        match self.governed.len() + self.admitted.len() + pings + more <= MAX_RULES {
            true => Ok(()),
            false => Err(Full),
        }
    }
}

/// The error of rules that have no room.
#[derive(Debug)]
struct Full;

impl PortInterval {
    /// Returns true if an interval begins where this one ends.
    fn touches(self, next: Self) -> bool {
        self.transport == next.transport && self.last.checked_add(1) == Some(next.first)
    }
}

/// A subject that holds for some ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Open,
    Untouched,
    Admitted(Subnet),
}

#[derive(Debug, Clone, Copy)]
enum Edge {
    Begins,
    Ends,
}

/// The ports of one transport at which something begins or ends.
struct Edges {
    transport: Transport,
    changes: BTreeMap<u32, Vec<(Subject, Edge)>>,
}

impl Edges {
    fn of(transport: Transport) -> Self {
        Self { transport, changes: BTreeMap::new() }
    }

    fn add(&mut self, range: &PortRange, subject: Subject) {
        if let Some((_, first, last)) = range.ports().filter(|(transport, ..)| *transport == self.transport) {
            self.changes.entry(first.into()).or_default().push((subject, Edge::Begins));
            self.changes.entry(u32::from(last) + 1).or_default().push((subject, Edge::Ends));
        }
    }
}

fn interval(transport: Transport, first: u32, last: u32) -> PortInterval {
    let port = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    PortInterval { transport, first: port(first), last: port(last) }
}

/// Returns subnets without those that are a part of another one.
fn apart(subnets: impl Iterator<Item = Subnet>) -> Vec<Subnet> {
    // They sort by their first address, and then from the largest to the smallest.
    let subnets: BTreeSet<Subnet> = subnets.collect();
    let mut apart: Vec<Subnet> = Vec::new();
    let mut reached: Option<IpAddr> = None;
    for subnet in subnets {
        let is_part = apart.last().is_some_and(|before| before.contains(subnet.first()))
            && reached.is_some_and(|reached| subnet.last() <= reached);
        if !is_part {
            reached = Some(subnet.last());
            apart.push(subnet);
        }
    }
    apart
}

#[cfg(test)]
mod tests;
