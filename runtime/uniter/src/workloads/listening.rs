//! The pods that listen, and the notices of their workloads that wait for charms.

use std::collections::BTreeMap;

use periapt_host_api::{
    ContainerName, UnitName,
    notice::{WaitingNotice, WorkloadNotice},
    record::WorkloadRecord,
};

use super::{NoticeTold, NoticesTold, PodId, WorkloadsKnown, WorkloadsTold, WorkloadsWord};
use crate::{ListeningWorkload, WorkloadBoots};

/// The most notices of one word to a runner. Each has less than 4 KiB, so that a word is far below the bound of a message.
const NOTICES_PER_WORD: usize = 128;

/// The pods of a model that listen, as their keeper knows them.
#[derive(Debug, Clone, Default)]
pub struct ListeningPods {
    pods: BTreeMap<PodId, ListeningWorkload>,
    /// The number of starts and ends that a runner must know of.
    version: u64,
    /// The number of notices that arrived.
    arrivals: u64,
    /// The notices that wait, as the pod and its number, by arrival.
    waiting: BTreeMap<u64, (PodId, u64)>,
}

impl ListeningPods {
    /// Adds a pod that listens.
    pub fn listens(&mut self, pod: &PodId, boot_id: String) {
        self.ended(pod);
        self.version += 1;
        self.pods.insert(pod.clone(), ListeningWorkload { boot_id, ..ListeningWorkload::default() });
    }

    /// Removes a pod, whose notices end with it. Returns true if it was there.
    pub fn ended(&mut self, pod: &PodId) -> bool {
        let Some(ended) = self.pods.remove(pod) else { return false };
        // A hook about one of its notices may wait for another try.
        self.version += u64::from(!ended.notices.is_empty());
        for (_, waiting) in ended.notices.after(0) {
            self.waiting.remove(&waiting.arrival);
        }
        true
    }

    /// Adds a notice of a pod. Returns the notice that its charm is not told of, because too many wait.
    pub fn add_notice(&mut self, pod: &PodId, number: u64, notice: WorkloadNotice) -> Option<WaitingNotice> {
        let listening = self.pods.get_mut(pod)?;
        if number <= listening.notices.last() {
            return None;
        }
        self.arrivals += 1;
        let removed = listening.notices.add(number, self.arrivals, notice);
        self.waiting.insert(self.arrivals, (pod.clone(), number));
        for waiting in [&removed.repeated, &removed.dropped].into_iter().flatten() {
            self.waiting.remove(&waiting.arrival);
        }
        removed.dropped
    }

    /// Removes the notices of which a unit's charm has been told.
    pub fn told_charm(&mut self, unit: &UnitName, record: &BTreeMap<ContainerName, WorkloadRecord>) {
        for (container, told) in record {
            let pod = self.pods.get_mut(&(unit.clone(), container.clone()));
            let Some(listening) = pod.filter(|listening| listening.boot_id == told.boot_id) else { continue };
            for waiting in listening.notices.told(told.told) {
                self.waiting.remove(&waiting.arrival);
            }
        }
    }

    /// Returns true if no notice waits.
    pub fn are_quiet(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the boot ids as runners are told.
    pub fn told(&self) -> WorkloadsTold {
        let mut boots: BTreeMap<UnitName, WorkloadBoots> = BTreeMap::new();
        for ((unit, container), listening) in &self.pods {
            boots.entry(unit.clone()).or_default().insert(container.clone(), listening.boot_id.clone());
        }
        WorkloadsTold { version: self.version, boots }
    }

    /// Returns true if a runner that knows this much knows all pods.
    fn are_known(&self, known: WorkloadsKnown) -> bool {
        self.version == known.pods
    }

    /// Returns true if a runner that knows this much knows all pods and all notices that wait.
    pub fn are_all_known(&self, known: WorkloadsKnown) -> bool {
        self.are_known(known) && self.notices_after(known).next().is_none()
    }

    /// Returns the next word to a runner that knows this much, and counts it as known: the pods, and once they are
    /// known their notices.
    pub fn next_word(&self, known: &mut WorkloadsKnown) -> Option<WorkloadsWord> {
        if !self.are_known(*known) {
            let told = self.told();
            known.pods = told.version;
            return Some(WorkloadsWord::Pods(told));
        }
        let told = self.next_notices(*known)?;
        known.notices = told.last;
        Some(WorkloadsWord::Notices(told))
    }

    /// Returns the next notices for a runner that knows this much.
    pub fn next_notices(&self, known: WorkloadsKnown) -> Option<NoticesTold> {
        let told = |(arrival, ((unit, container), number)): (&u64, &(PodId, u64))| {
            let listening = self.pods.get(&(unit.clone(), container.clone()))?;
            let (number, waiting) = listening.notices.after(number.checked_sub(1)?).next()?;
            let (unit, container) = (unit.clone(), container.clone());
            let (boot_id, notice) = (listening.boot_id.clone(), waiting.notice.clone());
            Some(NoticeTold { unit, container, boot_id, number, arrival: *arrival, notice })
        };
        let notices: Vec<_> = self.notices_after(known).take(NOTICES_PER_WORD).filter_map(told).collect();
        Some(NoticesTold { last: notices.last()?.arrival, notices })
    }

    fn notices_after(&self, known: WorkloadsKnown) -> impl Iterator<Item = (&u64, &(PodId, u64))> {
        self.waiting.range(known.notices.saturating_add(1)..)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pod(container: &str) -> PodId {
        ("app/0".parse().unwrap(), container.parse().unwrap())
    }

    fn custom(id: u64) -> WorkloadNotice {
        WorkloadNotice::Custom { id, key: format!("a.b/{id}") }
    }

    fn record(container: &str, boot_id: &str, told: u64) -> BTreeMap<ContainerName, WorkloadRecord> {
        [(container.parse().unwrap(), WorkloadRecord { boot_id: boot_id.to_owned(), told })].into()
    }

    fn numbers(told: Option<NoticesTold>) -> Vec<(String, u64)> {
        let notices = told.into_iter().flat_map(|told| told.notices);
        notices.map(|told| (told.container.to_string(), told.number)).collect()
    }

    #[test]
    fn notices_are_told_in_the_order_of_their_arrival_until_the_charm_knows_them() {
        let mut pods = ListeningPods::default();
        let mut known = WorkloadsKnown::default();
        pods.listens(&pod("web"), "1".to_owned());
        pods.listens(&pod("side"), "1".to_owned());
        assert!(!pods.are_known(known));
        known.pods = pods.told().version;
        assert!(pods.are_all_known(known));
        for (container, number, id) in [("web", 1, 7), ("side", 1, 7), ("web", 2, 8), ("web", 3, 7)] {
            pods.add_notice(&pod(container), number, custom(id));
        }
        let told = pods.next_notices(known);
        let expected = [("side", 1), ("web", 2), ("web", 3)].map(|(name, number)| (name.to_owned(), number));
        assert_eq!(numbers(told.clone()), expected, "the first one has repeated");
        assert!(!pods.are_all_known(known));
        known.notices = told.unwrap().last;
        assert!(pods.are_all_known(known) && pods.next_notices(known).is_none());
        // Another runner is told all that the charm was not.
        let unit = pod("web").0;
        pods.told_charm(&unit, &record("web", "1", 2));
        pods.told_charm(&unit, &record("side", "0", 9));
        assert_eq!(
            numbers(pods.next_notices(WorkloadsKnown::default())),
            [expected[0].clone(), expected[2].clone()]
        );
    }

    #[test]
    fn the_end_of_a_pod_ends_its_notices_and_is_told_if_there_were_any() {
        let mut pods = ListeningPods::default();
        pods.listens(&pod("web"), "1".to_owned());
        let known = WorkloadsKnown { pods: pods.told().version, notices: 0 };
        assert!(pods.ended(&pod("web")) && !pods.ended(&pod("web")));
        assert!(pods.are_all_known(known));
        pods.listens(&pod("web"), "2".to_owned());
        pods.add_notice(&pod("web"), 1, custom(1));
        let known = WorkloadsKnown { pods: pods.told().version, notices: 0 };
        pods.ended(&pod("web"));
        assert!(pods.are_quiet() && pods.next_notices(known).is_none() && !pods.are_known(known));
        pods.add_notice(&pod("web"), 1, custom(1));
        assert!(pods.are_quiet(), "a pod that has ended makes none");
    }

    proptest! {
        /// Steps: a notice of an id, the charm is told up to a number, a start.
        #[test]
        fn each_notice_that_waits_has_one_place(
            steps in proptest::collection::vec((0..8u8, 0..200u64, any::<bool>()), 0..400)
        ) {
            let mut pods = ListeningPods::default();
            let mut last = [0, 0];
            for (step, value, second) in steps {
                let (pod, last) = (pod(if second { "web" } else { "side" }), &mut last[usize::from(second)]);
                match step {
                    0 => {
                        pods.listens(&pod, value.to_string());
                        *last = 0;
                    }
                    1 => {
                        let boot_id = pods.pods.get(&pod).map(|it| it.boot_id.clone()).unwrap_or_default();
                        let record = record(pod.1.as_str(), &boot_id, value.min(*last));
                        pods.told_charm(&pod.0, &record);
                    }
                    _ => {
                        *last += 1;
                        pods.add_notice(&pod, *last, custom(value));
                    }
                }
                let waiting: usize = pods.pods.values().map(|it| it.notices.after(0).count()).sum();
                prop_assert_eq!(waiting, pods.waiting.len());
                for (arrival, (pod, number)) in &pods.waiting {
                    let (found, waiting) = pods.pods[pod].notices.after(number - 1).next().unwrap();
                    prop_assert_eq!((found, waiting.arrival), (*number, *arrival));
                }
            }
        }
    }
}
