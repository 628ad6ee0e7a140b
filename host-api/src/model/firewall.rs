//! Ingress rules for the firewall of a machine (`docs/hook-model.md` 7.3).

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    network::Subnet,
    ports::{PortRange, Transport},
};

/// The subnets that may reach each range of ports. Ranges that no subnet may reach are absent.
pub type IngressRules = BTreeMap<PortRange, BTreeSet<Subnet>>;

/// Returns the TCP ports that some rules open, in order. Port 0 is none.
pub fn tcp_ports(rules: &IngressRules) -> impl Iterator<Item = u16> {
    let ranges = rules.keys().filter_map(|range| range.ports());
    let ranges = ranges.filter(|(transport, ..)| *transport == Transport::Tcp);
    // Ranges sort by their first port, and may overlap.
    let mut next = 1;
    ranges.flat_map(move |(_, first, last)| {
        let from = u32::from(first).max(next);
        next = next.max(u32::from(last) + 1);
        (from..=u32::from(last)).filter_map(|port| u16::try_from(port).ok())
    })
}

/// The changes from the present to the wanted ingress rules (F-1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngressChanges {
    /// The rules to add.
    pub open: BTreeSet<(PortRange, Subnet)>,
    /// The rules to remove.
    pub close: BTreeSet<(PortRange, Subnet)>,
}

impl IngressChanges {
    /// Compares a provider's present rules with the wanted ones. Another client may have changed the present rules.
    pub fn between(present: &IngressRules, wanted: &IngressRules) -> Self {
        let (present, wanted) = (pairs(present), pairs(wanted));
        Self {
            open: wanted.difference(&present).copied().collect(),
            close: present.difference(&wanted).copied().collect(),
        }
    }

    /// Returns true if there are no changes.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.close.is_empty()
    }
}

fn pairs(rules: &IngressRules) -> BTreeSet<(PortRange, Subnet)> {
    rules.iter().flat_map(|(range, from)| from.iter().map(move |subnet| (*range, *subnet))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_overlapping_ranges_are_each_named_once() {
        let ports = |ranges: &[&str]| {
            let rules = ranges.iter().map(|range| (range.parse().unwrap(), BTreeSet::new())).collect();
            tcp_ports(&rules).collect::<Vec<_>>()
        };
        assert_eq!(ports(&["0-2", "2-4", "3", "9", "7/udp", "icmp"]), [1, 2, 3, 4, 9]);
        assert_eq!(ports(&["65534-65535", "65535"]), [65_534, 65_535]);
        assert_eq!(ports(&["0-65535", "1-3"]).len(), 65_535);
    }
}
