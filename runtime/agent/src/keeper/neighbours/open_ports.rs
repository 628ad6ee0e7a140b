//! The TCP ports that a model's units on this host have open, found by port: neither the number of units nor that of
//! their ports counts for a call.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
};

use periapt_host_api::{
    ApplicationName, MachineId, UnitName,
    connections::RelatedApplications,
    ports::{OpenedPorts, Transport},
};

/// The most units that a search finds: a call tries one after the other.
const MAX_FOUND: usize = 64;

/// The most entries that a search looks at. It has found `MAX_FOUND` units before, unless an application has hundreds of
/// relations to others of which none has the port.
const MAX_LOOKED_AT: usize = 1_024;

/// The open ports of the machines on this host.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OpenPorts {
    machines: BTreeMap<MachineId, BTreeMap<UnitName, Vec<OpenedPorts>>>,
    /// The units that have all ports of a block open, with their machines.
    by_block: BTreeMap<PortBlock, BlockUnits>,
}

type BlockUnits = BTreeSet<(UnitName, MachineId)>;

/// The `2^size` ports from `number * 2^size` on. A range of ports consists of at most 30 blocks, and a port is in 17.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PortBlock {
    size: u32,
    number: u32,
}

impl PortBlock {
    /// The size of the block with all ports.
    const LARGEST: u32 = 16;

    /// Returns the blocks that have a port.
    fn around(port: u16) -> impl Iterator<Item = Self> {
        (0..=Self::LARGEST).map(move |size| Self { size, number: u32::from(port) >> size })
    }

    /// Returns the blocks of a range, both ends included. They do not overlap.
    fn of_range(first: u16, last: u16) -> Vec<Self> {
        let (mut next, end) = (u32::from(first), u32::from(last) + 1);
        let mut blocks = Vec::new();
        while next < end {
            // The largest one that begins there and does not reach beyond the range.
            let size = next.trailing_zeros().min((end - next).ilog2());
            blocks.push(Self { size, number: next >> size });
            next += 1 << size;
        }
        blocks
    }
}

impl OpenPorts {
    /// Records the open ports of a machine. The cost is that of the machine's ports, before and after.
    pub(super) fn put(&mut self, machine: MachineId, ports: &BTreeMap<UnitName, Vec<OpenedPorts>>) {
        if self.machines.get(&machine) == Some(ports) {
            return;
        }
        self.remove(machine);
        for (unit, block) in blocks(ports) {
            self.by_block.entry(block).or_default().insert((unit.clone(), machine));
        }
        self.machines.insert(machine, ports.clone());
    }

    /// Forgets the open ports of a machine.
    pub(super) fn remove(&mut self, machine: MachineId) {
        let Some(ports) = self.machines.remove(&machine) else { return };
        for (unit, block) in blocks(&ports) {
            let Some(units) = self.by_block.get_mut(&block) else { continue };
            units.remove(&(unit.clone(), machine));
            if units.is_empty() {
                self.by_block.remove(&block);
            }
        }
    }

    /// Returns units that have a port open: first those of applications that are related to the asking unit's, because a
    /// unit reads their addresses in relations, then those of its own application, then others.
    pub(super) fn with_port(
        &self,
        asking: &UnitName,
        port: u16,
        related: &RelatedApplications,
    ) -> Vec<UnitName> {
        self.search(asking.application(), port, related).found
    }

    fn search(&self, own: &ApplicationName, port: u16, related: &RelatedApplications) -> Search {
        let mut search = Search { found: Vec::new(), left: MAX_LOOKED_AT };
        let blocks: Vec<_> = PortBlock::around(port).filter_map(|block| self.by_block.get(&block)).collect();
        for units in &blocks {
            search.take_related(units, own, related);
        }
        for units in &blocks {
            search.take_application(units, own);
        }
        for units in blocks {
            search.take_all(units.iter().map(|(unit, _)| unit));
        }
        search
    }
}

/// Returns each unit with each of its blocks of TCP ports.
fn blocks(ports: &BTreeMap<UnitName, Vec<OpenedPorts>>) -> impl Iterator<Item = (&UnitName, PortBlock)> {
    ports.iter().flat_map(|(unit, opened)| {
        let ranges = opened.iter().filter_map(|opened| opened.range.ports());
        let tcp = ranges.filter(|(transport, ..)| *transport == Transport::Tcp);
        let blocks = tcp.flat_map(|(_, first, last)| PortBlock::of_range(first, last));
        blocks.map(move |block| (unit, block))
    })
}

/// A search for units.
#[derive(Debug)]
struct Search {
    /// Each unit once.
    found: Vec<UnitName>,
    /// The entries that it may still look at.
    left: usize,
}

impl Search {
    /// Takes the units of all applications that are related to one. What lies between two of them is passed over.
    fn take_related(&mut self, units: &BlockUnits, own: &ApplicationName, related: &RelatedApplications) {
        let mut next = units.first().map(|(unit, _)| unit.application());
        while let Some(from) = next {
            if !self.may_look() {
                return;
            }
            let Some(application) = related.first_related(own, from) else { return };
            self.take_application(units, application);
            let last = (UnitName::new(application.clone(), u32::MAX), MachineId(u32::MAX));
            let behind = units.range((Bound::Excluded(last), Bound::Unbounded)).next();
            next = behind.map(|(unit, _)| unit.application());
        }
    }

    /// Takes the units of an application.
    fn take_application(&mut self, units: &BlockUnits, application: &ApplicationName) {
        let first = (UnitName::new(application.clone(), 0), MachineId(0));
        let behind = units.range(first..).map(|(unit, _)| unit);
        self.take_all(behind.take_while(|unit| unit.application() == application));
    }

    fn take_all<'a>(&mut self, units: impl Iterator<Item = &'a UnitName>) {
        for unit in units {
            if !self.may_look() {
                return;
            }
            if !self.found.contains(unit) {
                self.found.push(unit.clone());
            }
        }
    }

    /// Counts an entry. Returns false if the search is over.
    fn may_look(&mut self) -> bool {
        let may = self.left > 0 && self.found.len() < MAX_FOUND;
        self.left = self.left.saturating_sub(usize::from(may));
        may
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::view::ViewEntity;
    use proptest::prelude::*;

    use super::*;
    use crate::keeper::neighbours::tests::relation;

    fn ports(units: &[(&str, &[&str])]) -> BTreeMap<UnitName, Vec<OpenedPorts>> {
        let opened = |range: &&str| OpenedPorts { range: range.parse().unwrap(), endpoints: BTreeSet::new() };
        let of = |ranges: &[&str]| ranges.iter().map(opened).collect();
        units.iter().map(|(unit, ranges)| (unit.parse().unwrap(), of(ranges))).collect()
    }

    fn related(pairs: &[[&str; 2]]) -> RelatedApplications {
        let mut related = RelatedApplications::default();
        for (id, pair) in (1..).zip(pairs) {
            if let ViewEntity::Relation(relation) = relation(id, *pair) {
                related.put(&relation);
            }
        }
        related
    }

    /// Returns the units that `app/0` finds.
    fn found(open: &OpenPorts, port: u16, related: &RelatedApplications) -> Vec<String> {
        let units = open.with_port(&"app/0".parse().unwrap(), port, related);
        units.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn units_are_found_by_their_ports_related_ones_first_and_are_gone_with_their_machine() {
        let mut open = OpenPorts::default();
        open.put(MachineId(0), &ports(&[("app/1", &["80"]), ("db/0", &["80-99", "5432/udp"])]));
        open.put(MachineId(1), &ports(&[("aa/0", &["80"]), ("zz/0", &["1-65535"]), ("db/7", &["90"])]));
        let related = related(&[["app", "zz"], ["app", "missing"], ["aa", "db"]]);
        assert_eq!(found(&open, 80, &related), ["zz/0", "app/1", "aa/0", "db/0"]);
        assert_eq!(found(&open, 90, &related), ["zz/0", "db/7", "db/0"]);
        assert_eq!(found(&open, 5432, &related), ["zz/0"], "another transport");
        assert_eq!(found(&open, 0, &related), [""; 0]);
        open.put(MachineId(1), &ports(&[("aa/0", &["81"])]));
        assert_eq!(found(&open, 80, &related), ["app/1", "db/0"]);
        assert_eq!(found(&open, 81, &related), ["aa/0", "db/0"]);
        open.remove(MachineId(0));
        open.remove(MachineId(0));
        open.put(MachineId(1), &BTreeMap::new());
        assert!(open.by_block.is_empty(), "{open:?}");
    }

    #[test]
    fn a_search_looks_at_as_much_among_many_units_and_ports_as_among_few() {
        let looked_at = |applications: u32, port: u16| {
            let mut open = OpenPorts::default();
            for number in 0..applications {
                let (unit, own) = (format!("other{number:05}x/0"), (10_000 + number).to_string());
                open.put(MachineId(number), &ports(&[(unit.as_str(), &["80", own.as_str()])]));
            }
            open.put(MachineId(u32::MAX), &ports(&[("zz/0", &["80", "8000-9000"])]));
            let related = related(&[["app", "db"], ["app", "zz"]]);
            let search = open.search(&"app".parse().unwrap(), port, &related);
            assert_eq!(search.found[0].to_string(), "zz/0", "the related one is the first");
            MAX_LOOKED_AT - search.left
        };
        for port in [80, 8_500] {
            let (few, many) = (looked_at(100, port), looked_at(20_000, port));
            assert!(many <= few, "port {port}: {few} entries among 100 units, {many} among 20,000");
        }
    }

    #[test]
    fn a_search_is_bounded_where_related_applications_stand_between_those_with_the_port() {
        let mut open = OpenPorts::default();
        let mut pairs = Vec::new();
        let names: Vec<_> = (0..4_000).map(|number| format!("n{number:04}x")).collect();
        for (number, name) in (0..).zip(&names) {
            match number % 2 {
                0 => open.put(MachineId(number), &ports(&[(format!("{name}/0").as_str(), &["80"])])),
                _ => pairs.push(["app", name.as_str()]),
            }
        }
        let search = open.search(&"app".parse().unwrap(), 80, &related(&pairs));
        assert_eq!(search.left, 0);
    }

    proptest! {
        #[test]
        fn a_port_is_in_a_block_of_a_range_if_it_is_in_the_range(first: u16, last: u16, port: u16) {
            let (first, last) = (first.min(last), first.max(last));
            let blocks = PortBlock::of_range(first, last);
            prop_assert!(blocks.len() <= 30, "{}", blocks.len());
            for port in [port, first, last, first.wrapping_sub(1), last.wrapping_add(1)] {
                let having = PortBlock::around(port).filter(|block| blocks.contains(block)).count();
                prop_assert_eq!(having, usize::from((first..=last).contains(&port)), "{}", port);
            }
        }
    }
}
