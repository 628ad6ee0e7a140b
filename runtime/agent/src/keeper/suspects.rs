//! The hooks that may have killed a runner.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{OperationId, UnitName};

use crate::{
    metrics::{Share, metrics},
    protocol::Suspect,
};

/// The hooks of one model that are in flight, and those that were in flight when a runner died.
///
/// The next runner runs each suspect alone. If it dies again, that hook has killed it. A suspect is
/// cleared when it ends, or when another operation of its unit starts.
#[derive(Debug)]
pub(crate) struct Suspects {
    in_flight: BTreeMap<UnitName, OperationId>,
    /// The number of hooks in flight, as a share of the agent's gauge.
    share: Share,
    suspects: BTreeMap<UnitName, (OperationId, u32)>,
}

impl Default for Suspects {
    fn default() -> Self {
        let share = Share::of(&metrics().hooks_in_flight);
        Self { in_flight: BTreeMap::new(), share, suspects: BTreeMap::new() }
    }
}

impl Suspects {
    fn count(&mut self) {
        self.share.set(u64::try_from(self.in_flight.len()).unwrap_or(u64::MAX));
    }

    /// Records the start of a hook.
    pub(crate) fn started(&mut self, unit: UnitName, operation: OperationId) {
        if self.suspects.get(&unit).is_some_and(|(suspect, _)| *suspect != operation) {
            self.suspects.remove(&unit);
        }
        self.in_flight.insert(unit, operation);
        self.count();
    }

    /// Records the end of a hook.
    pub(crate) fn ended(&mut self, unit: &UnitName, operation: OperationId) {
        self.in_flight.remove(unit);
        self.count();
        if self.suspects.get(unit).is_some_and(|(suspect, _)| *suspect <= operation) {
            self.suspects.remove(unit);
        }
    }

    /// Records the death of the runner: each hook in flight becomes a suspect, or is suspected once more.
    pub(crate) fn died(&mut self) {
        for (unit, operation) in std::mem::take(&mut self.in_flight) {
            let suspect = self.suspects.entry(unit).or_insert((operation, 0));
            *suspect = (operation, if suspect.0 == operation { suspect.1.saturating_add(1) } else { 1 });
        }
        self.count();
    }

    /// Clears the hooks in flight after an orderly end of the runner.
    pub(crate) fn released(&mut self) {
        self.in_flight.clear();
        self.count();
    }

    /// Forgets units that are gone.
    pub(crate) fn retain(&mut self, units: &BTreeSet<UnitName>) {
        self.in_flight.retain(|unit, _| units.contains(unit));
        self.count();
        self.suspects.retain(|unit, _| units.contains(unit));
    }

    /// Returns the number of hooks in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Returns the suspects in the order for the next runner: the least suspicious first, to clear
    /// harmless hooks before the runner dies again.
    pub(crate) fn list(&self) -> Vec<Suspect> {
        let mut list: Vec<_> = self
            .suspects
            .iter()
            .map(|(unit, (operation, deaths))| Suspect {
                unit: unit.clone(),
                operation: *operation,
                deaths: *deaths,
            })
            .collect();
        list.sort_by_key(|suspect| suspect.deaths);
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(number: u32) -> UnitName {
        format!("app/{number}").parse().unwrap()
    }

    fn deaths(suspects: &Suspects) -> Vec<(String, u64, u32)> {
        suspects
            .list()
            .into_iter()
            .map(|suspect| (suspect.unit.to_string(), suspect.operation.0, suspect.deaths))
            .collect()
    }

    #[test]
    fn a_hook_that_ended_before_the_death_is_no_suspect() {
        let mut suspects = Suspects::default();
        suspects.started(unit(0), OperationId(4));
        suspects.started(unit(1), OperationId(9));
        suspects.ended(&unit(0), OperationId(4));
        suspects.died();
        assert_eq!(deaths(&suspects), [("app/1".to_owned(), 9, 1)]);
        assert_eq!(suspects.in_flight(), 0);
    }

    #[test]
    fn deaths_of_the_same_run_add_up_and_the_innocent_comes_first() {
        let mut suspects = Suspects::default();
        suspects.started(unit(0), OperationId(4));
        suspects.started(unit(1), OperationId(9));
        suspects.died();
        suspects.started(unit(0), OperationId(4));
        suspects.died();
        assert_eq!(deaths(&suspects), [("app/1".to_owned(), 9, 1), ("app/0".to_owned(), 4, 2)]);
        suspects.started(unit(1), OperationId(9));
        suspects.ended(&unit(1), OperationId(9));
        assert_eq!(deaths(&suspects), [("app/0".to_owned(), 4, 2)]);
    }

    #[test]
    fn another_run_of_the_same_unit_starts_at_one() {
        let mut suspects = Suspects::default();
        suspects.started(unit(0), OperationId(4));
        suspects.died();
        suspects.started(unit(0), OperationId(5));
        suspects.died();
        assert_eq!(deaths(&suspects), [("app/0".to_owned(), 5, 1)]);
    }

    #[test]
    fn an_orderly_end_leaves_no_new_suspect() {
        let mut suspects = Suspects::default();
        suspects.started(unit(0), OperationId(4));
        suspects.released();
        suspects.died();
        assert_eq!(suspects.list(), []);
    }

    #[test]
    fn units_that_are_gone_are_forgotten() {
        let mut suspects = Suspects::default();
        suspects.started(unit(0), OperationId(4));
        suspects.died();
        suspects.retain(&BTreeSet::new());
        assert_eq!(suspects.list(), []);
    }
}
