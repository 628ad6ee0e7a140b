//! The workloads beside the runner's units, as the keeper tells of them, for the tasks of the runner.

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use periapt_host_api::{UnitName, view::View};
use periapt_uniter::{
    KnownWorkloads, NoticesTold, UnitWorkloads, WorkloadsChanged, WorkloadsKnown, WorkloadsTold,
};
use tokio::sync::Notify;

/// The workloads that listen. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workloads {
    known: Arc<Mutex<KnownWorkloads>>,
    news: Arc<Notify>,
}

impl Workloads {
    /// Takes the keeper's word about all pods.
    pub(crate) fn replace(&self, told: WorkloadsTold) {
        self.known.lock().replace(told);
        self.news.notify_one();
    }

    /// Takes the keeper's word about the pods of some units.
    pub(crate) fn update(&self, told: WorkloadsChanged) {
        self.known.lock().update(told);
        self.news.notify_one();
    }

    /// Takes the keeper's word about notices, and forgets those of which charms have been told according to the view.
    pub(crate) fn add(&self, told: NoticesTold, view: &View) {
        self.known.lock().add(told, view);
        self.news.notify_one();
    }

    /// Returns the workloads beside a unit.
    pub(crate) fn of(&self, unit: &UnitName) -> UnitWorkloads {
        self.known.lock().of(unit).cloned().unwrap_or_default()
    }

    /// Waits for a word of the keeper, and returns the units that it concerns, and how much they know once they are told.
    pub(crate) async fn changes(&self) -> (BTreeSet<UnitName>, WorkloadsKnown) {
        loop {
            if let Some(changes) = self.take_changes() {
                return changes;
            }
            self.news.notified().await;
        }
    }

    fn take_changes(&self) -> Option<(BTreeSet<UnitName>, WorkloadsKnown)> {
        self.known.lock().changes()
    }

    /// Records that all units have been told this much.
    pub(crate) fn told_units(&self, known: WorkloadsKnown) {
        self.known.lock().told_units(known);
    }

    /// Returns how much all units have been told.
    pub(crate) fn delivered(&self) -> WorkloadsKnown {
        self.known.lock().delivered()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use periapt_host_api::notice::WorkloadNotice;
    use periapt_uniter::NoticeTold;
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
        let changed_to = |since, version, boot: &[(&str, &str)]| {
            let WorkloadsTold { version, boots } = boots(version, boot);
            WorkloadsChanged { since, version, boots }
        };
        workloads.update(changed_to(9, 10, &[("app/2", "1")]));
        assert_eq!(changed(&workloads).await, ["nothing"], "a word before it was lost");
        workloads.update(changed_to(3, 4, &[("app/0", "2")]));
        assert_eq!((changed(&workloads).await, last()), (vec!["app/0".to_owned()], vec![0]));
    }
}
