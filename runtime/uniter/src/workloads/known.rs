//! The workloads beside a runner's units, as its keeper tells of them.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{UnitName, view::View};

use super::{NoticeTold, NoticesTold, WorkloadsChanged, WorkloadsKnown, WorkloadsTold};
use crate::{ListeningWorkload, UnitWorkloads, WorkloadBoots};

/// The workloads that listen, as a runner knows them.
#[derive(Debug, Clone, Default)]
pub struct KnownWorkloads {
    units: BTreeMap<UnitName, UnitWorkloads>,
    /// The extent of the keeper's words.
    heard: WorkloadsKnown,
    /// The extent to which all units know them.
    delivered: WorkloadsKnown,
    /// The units that have not been told of a change.
    changed: BTreeSet<UnitName>,
}

impl KnownWorkloads {
    /// Takes the keeper's word about all pods.
    pub fn replace(&mut self, told: WorkloadsTold) {
        self.heard.pods = told.version;
        let mut earlier = std::mem::take(&mut self.units);
        for (unit, boots) in told.boots {
            let before = earlier.remove(&unit).unwrap_or_default();
            self.take(unit, before, boots);
        }
        self.changed.extend(earlier.into_keys());
    }

    /// Takes the keeper's word about the pods of some units.
    pub fn update(&mut self, told: WorkloadsChanged) {
        // A word between was lost. The keeper hears how much is known, and tells all that came since.
        if told.since > self.heard.pods {
            return;
        }
        self.heard.pods = told.version;
        for (unit, boots) in told.boots {
            let before = self.units.remove(&unit).unwrap_or_default();
            self.take(unit, before, boots);
        }
    }

    /// Takes the workloads of a unit that listen, in the place of those before.
    fn take(&mut self, unit: UnitName, mut before: UnitWorkloads, boots: WorkloadBoots) {
        let mut after = UnitWorkloads::new();
        for (container, boot_id) in boots {
            let same = before.remove(&container).filter(|listening| listening.boot_id == boot_id);
            if same.is_none() {
                self.changed.insert(unit.clone());
            }
            let new = || ListeningWorkload { boot_id, ..ListeningWorkload::default() };
            after.insert(container, same.unwrap_or_else(new));
        }
        if !before.is_empty() {
            self.changed.insert(unit.clone());
        }
        if !after.is_empty() {
            self.units.insert(unit, after);
        }
    }

    /// Takes the keeper's word about notices, and forgets those of which charms have been told according to the view.
    pub fn add(&mut self, told: NoticesTold, view: &View) {
        self.heard.notices = told.last;
        for NoticeTold { unit, container, boot_id, number, arrival, notice } in told.notices {
            let listening = self.units.get_mut(&unit).and_then(|workloads| workloads.get_mut(&container));
            // Another start of the container has no notices of this one.
            let Some(listening) = listening.filter(|listening| listening.boot_id == boot_id) else {
                continue;
            };
            let record = view.units.get(&unit).and_then(|unit| unit.record.workloads.get(&container));
            if let Some(record) = record.filter(|record| record.boot_id == boot_id) {
                listening.notices.told(record.told);
            }
            listening.notices.add(number, arrival, notice);
            self.changed.insert(unit);
        }
    }

    /// Returns the workloads beside a unit, if it has some.
    pub fn of(&self, unit: &UnitName) -> Option<&UnitWorkloads> {
        self.units.get(unit)
    }

    /// Takes the units that the keeper's words concern since the last call, with the extent of its words. None if all
    /// units know them.
    pub fn changes(&mut self) -> Option<(BTreeSet<UnitName>, WorkloadsKnown)> {
        let has_news = !self.changed.is_empty() || self.heard != self.delivered;
        has_news.then(|| (std::mem::take(&mut self.changed), self.heard))
    }

    /// Records that all units have been told this much.
    pub fn told_units(&mut self, known: WorkloadsKnown) {
        self.delivered = known;
    }

    /// Returns how much all units have been told.
    pub fn delivered(&self) -> WorkloadsKnown {
        self.delivered
    }
}
