//! The ingress rules of a model's units on this agent, from the frames that the keeper forwards.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use periapt_host_api::{
    MachineId, UnitName,
    firewall::IngressRules,
    view::{FrameLine, MachineView, ViewEntity, ViewKey},
};

/// The units of one model on this agent that hosts outside may reach, with their rules.
#[derive(Debug, Default, Clone)]
pub(crate) struct WantedIngress {
    units: BTreeMap<UnitName, (MachineId, Arc<IngressRules>)>,
    machines: BTreeMap<MachineId, BTreeSet<UnitName>>,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<Box<WantedIngress>>,
    /// The units whose rules the lines of an unfinished frame changed.
    changed: BTreeSet<UnitName>,
}

impl WantedIngress {
    /// Records the changes of a frame's line. Returns the units with other rules, after the last line of a frame.
    pub(crate) fn observe(&mut self, line: &FrameLine) -> BTreeSet<UnitName> {
        let coming = self.coming.take();
        if line.from.is_some() {
            self.note(line);
            return match line.is_last() {
                true => std::mem::take(&mut self.changed),
                false => BTreeSet::new(),
            };
        }
        let mut coming = coming.filter(|_| !line.is_first()).unwrap_or_default();
        coming.note(line);
        if !line.is_last() {
            self.coming = Some(coming);
            return BTreeSet::new();
        }
        let before = std::mem::replace(self, *coming);
        let mut changed = before.changed;
        let rules = |all: &BTreeMap<_, (_, Arc<IngressRules>)>, unit| {
            all.get(unit).map(|(_, rules)| Arc::clone(rules))
        };
        let known = before.units.keys().chain(self.units.keys());
        changed
            .extend(known.filter(|unit| rules(&before.units, *unit) != rules(&self.units, *unit)).cloned());
        self.changed.clear();
        changed
    }

    /// Returns the rules of a unit; none if no other host may reach it.
    pub(crate) fn rules(&self, unit: &UnitName) -> Option<Arc<IngressRules>> {
        self.units.get(unit).map(|(_, rules)| Arc::clone(rules))
    }

    fn note(&mut self, line: &FrameLine) {
        for key in &line.deletes {
            if let ViewKey::Machine(id) = key {
                self.replace(*id, BTreeMap::new());
            }
        }
        for entity in &line.puts {
            if let ViewEntity::Machine(MachineView { id, unit_ingress, .. }) = entity {
                self.replace(*id, unit_ingress.clone());
            }
        }
    }

    /// Replaces the rules of the units on a machine.
    fn replace(&mut self, id: MachineId, rules: BTreeMap<UnitName, IngressRules>) {
        let before = self.machines.remove(&id).unwrap_or_default();
        for unit in before.into_iter().filter(|unit| !rules.contains_key(unit)) {
            // A unit that has moved to another machine of this agent has its rules from there.
            if self.units.get(&unit).is_some_and(|(machine, _)| *machine == id) {
                self.units.remove(&unit);
                self.changed.insert(unit);
            }
        }
        if rules.is_empty() {
            return;
        }
        self.machines.insert(id, rules.keys().cloned().collect());
        for (unit, rules) in rules {
            if self.units.get(&unit).is_none_or(|(_, present)| **present != rules) {
                self.changed.insert(unit.clone());
            }
            self.units.insert(unit, (id, Arc::new(rules)));
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::view::LineNumber;

    use super::*;
    use crate::keeper::{ingress::tests::machine, tests::fake::frame};

    fn units(names: &[&str]) -> BTreeSet<UnitName> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn a_frame_names_the_units_whose_rules_it_changes_and_no_other() {
        let mut wanted = WantedIngress::default();
        let all = |port: &str| {
            let first = machine(0, &[("app/0", "80", "0.0.0.0/0"), ("app/1", port, "0.0.0.0/0")]);
            vec![first, machine(1, &[("db/0", "5432", "10.0.0.0/8")])]
        };
        assert_eq!(wanted.observe(&frame(None, 5, all("81"))), units(&["app/0", "app/1", "db/0"]));
        assert_eq!(wanted.observe(&frame(None, 6, all("81"))), units(&[]), "the same view again");
        assert_eq!(wanted.observe(&frame(None, 7, all("82"))), units(&["app/1"]));
        let one = |rules: &[(&str, &str, &str)]| vec![machine(0, rules)];
        let changed = wanted.observe(&frame(Some(7), 8, one(&[("app/0", "80", "10.0.0.0/8")])));
        assert_eq!(changed, units(&["app/0", "app/1"]));
        assert!(wanted.rules(&"app/1".parse().unwrap()).is_none());
        // A unit moves: the frame may bring its new machine before the old one.
        let moved = vec![machine(1, &[("app/0", "80", "10.0.0.0/8")]), machine(0, &[])];
        assert_eq!(wanted.observe(&frame(Some(8), 9, moved)), units(&["db/0"]));
        assert!(wanted.rules(&"app/0".parse().unwrap()).is_some());
        let mut line = frame(Some(9), 10, Vec::new());
        line.deletes = vec![ViewKey::Machine(MachineId(1))];
        assert_eq!(wanted.observe(&line), units(&["app/0"]));
        assert!(wanted.units.is_empty() && wanted.machines.is_empty());
    }

    #[test]
    fn a_replacement_in_lines_counts_once_it_is_whole() {
        let mut wanted = WantedIngress::default();
        let line = |number, puts| {
            let mut line = frame(None, 9, puts);
            line.line = Some(LineNumber { number, of: 2 });
            line
        };
        let first = || line(1, vec![machine(0, &[("app/0", "80", "0.0.0.0/0")])]);
        let last = || line(2, vec![machine(1, &[("app/1", "81", "0.0.0.0/0")])]);
        assert_eq!(wanted.observe(&first()), units(&[]));
        assert!(wanted.rules(&"app/0".parse().unwrap()).is_none());
        // The frame was interrupted, and comes again.
        assert_eq!(wanted.observe(&first()), units(&[]));
        assert_eq!(wanted.observe(&last()), units(&["app/0", "app/1"]));
        assert_eq!(wanted.observe(&first()), units(&[]));
        assert_eq!(wanted.observe(&last()), units(&[]), "nothing has changed");
    }
}
