//! The workloads beside the runner's units, as the keeper tells of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use periapt_host_api::{UnitName, view::View};
use periapt_uniter::{ListeningWorkload, UnitWorkloads};
use tokio::sync::Notify;

use crate::protocol::{NoticeTold, NoticesTold, WorkloadsKnown, WorkloadsTold};

/// The workloads that listen. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workloads {
    known: Arc<Mutex<Known>>,
    news: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Known {
    units: BTreeMap<UnitName, UnitWorkloads>,
    /// The extent of the keeper's words.
    heard: WorkloadsKnown,
    /// The extent to which all units know them.
    delivered: WorkloadsKnown,
    /// The units that have not been told of a change.
    changed: BTreeSet<UnitName>,
}

impl Workloads {
    /// Takes the keeper's word about all pods.
    pub(crate) fn replace(&self, told: WorkloadsTold) {
        let known = &mut *self.known.lock();
        known.heard.pods = told.version;
        let mut earlier = std::mem::take(&mut known.units);
        for (unit, boots) in told.boots {
            let mut before = earlier.remove(&unit).unwrap_or_default();
            let mut after = UnitWorkloads::new();
            for (container, boot_id) in boots {
                let same = before.remove(&container).filter(|listening| listening.boot_id == boot_id);
                if same.is_none() {
                    known.changed.insert(unit.clone());
                }
                let new = || ListeningWorkload { boot_id, ..ListeningWorkload::default() };
                after.insert(container, same.unwrap_or_else(new));
            }
            if !before.is_empty() {
                known.changed.insert(unit.clone());
            }
            known.units.insert(unit, after);
        }
        known.changed.extend(earlier.into_keys());
        self.news.notify_one();
    }

    /// Takes the keeper's word about notices, and forgets those of which charms have been told according to the view.
    pub(crate) fn add(&self, told: NoticesTold, view: &View) {
        let known = &mut *self.known.lock();
        known.heard.notices = told.last;
        for NoticeTold { unit, container, boot_id, number, arrival, notice } in told.notices {
            let listening = known.units.get_mut(&unit).and_then(|workloads| workloads.get_mut(&container));
            // Another start of the container has no notices of this one.
            let Some(listening) = listening.filter(|listening| listening.boot_id == boot_id) else {
                continue;
            };
            let record = view.units.get(&unit).and_then(|unit| unit.record.workloads.get(&container));
            if let Some(record) = record.filter(|record| record.boot_id == boot_id) {
                listening.notices.told(record.told);
            }
            listening.notices.add(number, arrival, notice);
            known.changed.insert(unit);
        }
        self.news.notify_one();
    }

    /// Returns the workloads beside a unit.
    pub(crate) fn of(&self, unit: &UnitName) -> UnitWorkloads {
        self.known.lock().units.get(unit).cloned().unwrap_or_default()
    }

    /// Waits for a word of the keeper, and returns the units that it concerns, and how much they know once they are told.
    pub(crate) async fn changes(&self) -> (BTreeSet<UnitName>, WorkloadsKnown) {
        loop {
            {
                let known = &mut *self.known.lock();
                if !known.changed.is_empty() || known.heard != known.delivered {
                    return (std::mem::take(&mut known.changed), known.heard);
                }
            }
            self.news.notified().await;
        }
    }

    /// Records that all units have been told this much.
    pub(crate) fn told_units(&self, known: WorkloadsKnown) {
        self.known.lock().delivered = known;
    }

    /// Returns how much all units have been told.
    pub(crate) fn delivered(&self) -> WorkloadsKnown {
        self.known.lock().delivered
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use periapt_host_api::notice::WorkloadNotice;
    use tokio::time::timeout;

    use super::*;

    fn boots(version: u64, boots: &[(&str, &str)]) -> WorkloadsTold {
        let boots = boots.iter().map(|(unit, boot_id)| {
            let listening = [("web".parse().unwrap(), (*boot_id).to_owned())];
            (unit.parse().unwrap(), listening.into())
        });
        WorkloadsTold { version, boots: boots.collect() }
    }

    fn notices(boot_id: &str, number: u64) -> NoticesTold {
        let notice = WorkloadNotice::CheckFailed { check: "up".to_owned() };
        let (unit, container) = ("app/0".parse().unwrap(), "web".parse().unwrap());
        let told =
            NoticeTold { unit, container, boot_id: boot_id.to_owned(), number, arrival: number, notice };
        NoticesTold { last: number, notices: vec![told] }
    }

    async fn changed(workloads: &Workloads) -> Vec<String> {
        let news = timeout(Duration::from_millis(50), workloads.changes()).await;
        let Ok((changed, known)) = news else { return vec!["nothing".to_owned()] };
        workloads.told_units(known);
        changed.iter().map(UnitName::to_string).collect()
    }

    #[tokio::test]
    async fn a_word_concerns_the_units_whose_workloads_changed() {
        let (workloads, view) = (Workloads::default(), View::default());
        assert_eq!(changed(&workloads).await, ["nothing"]);
        workloads.replace(boots(1, &[("app/0", "1"), ("app/1", "1")]));
        assert_eq!(changed(&workloads).await, ["app/0", "app/1"]);
        workloads.replace(boots(2, &[("app/0", "1"), ("app/1", "2")]));
        assert_eq!(workloads.delivered(), WorkloadsKnown { pods: 1, notices: 0 });
        assert_eq!(changed(&workloads).await, ["app/1"]);
        workloads.add(notices("1", 3), &view);
        assert_eq!(changed(&workloads).await, ["app/0"]);
        assert_eq!(workloads.delivered(), WorkloadsKnown { pods: 2, notices: 3 });
        // A notice of a start that has ended concerns nobody.
        workloads.add(notices("0", 4), &view);
        assert_eq!(changed(&workloads).await, [""; 0]);
        let unit = "app/0".parse().unwrap();
        let last = || workloads.of(&unit).values().map(|it| it.notices.last()).collect::<Vec<_>>();
        assert_eq!(last(), [3]);
        // Other pods leave a unit's notices as they are; another start of its own has none.
        workloads.replace(boots(3, &[("app/0", "1")]));
        assert_eq!((changed(&workloads).await, last()), (vec!["app/1".to_owned()], vec![3]));
        workloads.replace(boots(4, &[("app/0", "2")]));
        assert_eq!((changed(&workloads).await, last()), (vec!["app/0".to_owned()], vec![0]));
    }
}
