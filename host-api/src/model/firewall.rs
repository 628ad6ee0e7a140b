//! What the firewall of a machine is to let in (`hook-model.md` 7.3).

use std::collections::{BTreeMap, BTreeSet};

use crate::{network::Subnet, ports::PortRange};

/// For each range of ports, from where it may be reached. One that nobody may reach is not there.
pub type IngressRules = BTreeMap<PortRange, BTreeSet<Subnet>>;

/// What a provider must change to have the rules that are wanted (F-1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IngressChanges {
    /// To open.
    pub open: BTreeSet<(PortRange, Subnet)>,
    /// To close.
    pub close: BTreeSet<(PortRange, Subnet)>,
}

impl IngressChanges {
    /// From what a provider has to what is wanted, whoever changed it meanwhile.
    pub fn between(present: &IngressRules, wanted: &IngressRules) -> Self {
        let (present, wanted) = (pairs(present), pairs(wanted));
        Self {
            open: wanted.difference(&present).copied().collect(),
            close: present.difference(&wanted).copied().collect(),
        }
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.close.is_empty()
    }
}

fn pairs(rules: &IngressRules) -> BTreeSet<(PortRange, Subnet)> {
    rules.iter().flat_map(|(range, from)| from.iter().map(move |subnet| (*range, *subnet))).collect()
}
