//! The bytes of units' workloads through the gate: those of hosts outside, and those of other units.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use periapt_host_api::{UnitName, container::UnitTraffic};

/// The traffic of one unit, counted as it comes.
#[derive(Debug, Default)]
pub(crate) struct CountedTraffic {
    connections: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

impl CountedTraffic {
    /// Counts a connection.
    pub(crate) fn connected(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts bytes that the unit's workloads got.
    pub(crate) fn received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes of the unit's workloads.
    pub(crate) fn sent(&self, bytes: u64) {
        self.sent.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the counts.
    pub(crate) fn counts(&self) -> UnitTraffic {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        UnitTraffic {
            connections: count(&self.connections),
            received: count(&self.received),
            sent: count(&self.sent),
        }
    }
}

/// The traffic of one model's units since this agent runs their workloads.
#[derive(Debug, Default, Clone)]
pub(crate) struct ModelTraffic(Arc<Mutex<BTreeMap<UnitName, Arc<CountedTraffic>>>>);

impl ModelTraffic {
    /// Counts the traffic of a unit from now on.
    pub(super) fn begin(&self, unit: &UnitName) {
        self.0.lock().entry(unit.clone()).or_default();
    }

    /// Returns the traffic of a unit. That of a unit whose traffic is not counted goes nowhere.
    pub(crate) fn of(&self, unit: &UnitName) -> Arc<CountedTraffic> {
        self.0.lock().get(unit).cloned().unwrap_or_default()
    }

    /// Forgets the traffic of a unit.
    pub(super) fn forget(&self, unit: &UnitName) {
        self.0.lock().remove(unit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_counted_until_it_is_gone() {
        let traffic = ModelTraffic::default();
        let [web, db]: [UnitName; 2] = ["web/0", "db/0"].map(|name| name.parse().unwrap());
        traffic.begin(&web);
        traffic.begin(&db);
        traffic.of(&web).connected();
        traffic.of(&web).received(7);
        traffic.of(&db).sent(9);
        assert_eq!(traffic.of(&web).counts(), UnitTraffic { connections: 1, received: 7, sent: 0 });
        traffic.forget(&db);
        traffic.of(&db).sent(9);
        traffic.begin(&web);
        assert_eq!(traffic.of(&db).counts(), UnitTraffic::default());
        assert_eq!(traffic.of(&web).counts().received, 7);
    }
}
