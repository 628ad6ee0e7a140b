//! Ingress rules for the firewall of a machine (`docs/hook-model.md` 7.3).

use std::collections::{BTreeMap, BTreeSet};

use crate::{network::Subnet, ports::PortRange};

/// The subnets that may reach each range of ports. Ranges that no subnet may reach are absent.
pub type IngressRules = BTreeMap<PortRange, BTreeSet<Subnet>>;

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
