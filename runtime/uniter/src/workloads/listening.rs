//! The pods that listen, and the notices of their workloads that wait for charms.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ContainerName, UnitName,
    notice::{WaitingNotice, WorkloadNotice},
    record::WorkloadRecord,
};

use super::{NoticeTold, NoticesTold, PodId, WorkloadsChanged, WorkloadsKnown, WorkloadsTold, WorkloadsWord};
use crate::{ListeningWorkload, WorkloadBoots};

/// The most notices of one word to a runner. Each has less than 4 KiB, so that a word is far below the bound of a message.
const NOTICES_PER_WORD: usize = 128;

/// The units of which it is known when their pods changed last. A runner that lags behind more of them is told of
/// all pods.
const CHANGES_KEPT: usize = 1_024;

/// The pods of a model that listen, as their keeper knows them.
#[derive(Debug, Clone, Default)]
pub struct ListeningPods {
    pods: BTreeMap<PodId, ListeningWorkload>,
    /// The boot ids of the pods.
    boots: BTreeMap<UnitName, WorkloadBoots>,
    /// The number of starts and ends that a runner must know of.
    version: u64,
    changes: PodChanges,
    /// The number of notices that arrived.
    arrivals: u64,
    /// The notices that wait, as the pod and its number, by arrival.
    waiting: BTreeMap<u64, (PodId, u64)>,
}

/// The units whose pods changed last, so that a word to a runner has these alone.
#[derive(Debug, Clone, Default)]
struct PodChanges {
    /// The units, by the version with which a runner is told. Each is there once.
    units: BTreeMap<u64, BTreeSet<UnitName>>,
    versions: BTreeMap<UnitName, u64>,
    /// The last version of which some units are not known any more.
    forgotten: u64,
}

impl PodChanges {
    /// Adds a unit that changed.
    fn add(&mut self, unit: &UnitName, version: u64) {
        if let Some(before) = self.versions.insert(unit.clone(), version)
            && let Some(units) = self.units.get_mut(&before)
        {
            units.remove(unit);
            if units.is_empty() {
                self.units.remove(&before);
            }
        }
        self.units.entry(version).or_default().insert(unit.clone());
        while self.versions.len() > CHANGES_KEPT {
            let Some((version, units)) = self.units.pop_first() else { break };
            for unit in &units {
                self.versions.remove(unit);
            }
            self.forgotten = version;
        }
    }

    /// Returns the units that changed after a version; none if not all are known.
    fn since(&self, version: u64) -> Option<impl Iterator<Item = &UnitName>> {
        let changed = self.units.range(version.saturating_add(1)..);
        (version >= self.forgotten).then(|| changed.flat_map(|(_, units)| units))
    }
}

impl ListeningPods {
    /// Adds a pod that listens.
    pub fn listens(&mut self, pod: &PodId, boot_id: String) {
        self.ended(pod);
        self.version += 1;
        self.changes.add(&pod.0, self.version);
        self.boots.entry(pod.0.clone()).or_default().insert(pod.1.clone(), boot_id.clone());
        self.pods.insert(pod.clone(), ListeningWorkload { boot_id, ..ListeningWorkload::default() });
    }

    /// Removes a pod, whose notices end with it. Returns true if it was there.
    pub fn ended(&mut self, pod: &PodId) -> bool {
        let Some(ended) = self.pods.remove(pod) else { return false };
        // A hook about one of its notices may wait for another try.
        let is_told = !ended.notices.is_empty();
        self.version += u64::from(is_told);
        // An end that is not told is told with what comes next.
        self.changes.add(&pod.0, self.version + u64::from(!is_told));
        if let Some(boots) = self.boots.get_mut(&pod.0) {
            boots.remove(&pod.1);
            if boots.is_empty() {
                self.boots.remove(&pod.0);
            }
        }
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
        WorkloadsTold { version: self.version, boots: self.boots.clone() }
    }

    /// Returns the boot ids of the units that changed after a version; none if not all of these are known.
    fn told_since(&self, since: u64) -> Option<WorkloadsChanged> {
        let boots = |unit: &UnitName| (unit.clone(), self.boots.get(unit).cloned().unwrap_or_default());
        let boots = self.changes.since(since)?.map(boots).collect();
        Some(WorkloadsChanged { since, version: self.version, boots })
    }

    /// Returns true if a runner that knows this much knows all pods.
    fn are_known(&self, known: WorkloadsKnown) -> bool {
        self.version == known.pods
    }

    /// Returns true if a runner that knows this much knows all pods and all notices that wait.
    pub fn are_all_known(&self, known: WorkloadsKnown) -> bool {
        self.are_known(known) && self.notices_after(known).next().is_none()
    }

    /// Returns the next word to a runner that knows this much, and counts it as known: the pods that changed, or all if
    /// these are too many, and once they are known their notices.
    pub fn next_word(&self, known: &mut WorkloadsKnown) -> Option<WorkloadsWord> {
        if !self.are_known(*known) {
            let since = std::mem::replace(&mut known.pods, self.version);
            let all = || WorkloadsWord::Pods(self.told());
            return Some(self.told_since(since).map_or_else(all, WorkloadsWord::Changed));
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
    use periapt_host_api::view::View;
    use proptest::prelude::*;

    use super::*;
    use crate::KnownWorkloads;

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

    fn of(unit: u64, container: &str) -> PodId {
        (format!("app/{unit}").parse().unwrap(), container.parse().unwrap())
    }

    /// Tells a runner all that it does not know, and returns the number of units in each word.
    fn tell(pods: &ListeningPods, known: &mut WorkloadsKnown, runner: &mut KnownWorkloads) -> Vec<usize> {
        let mut words = Vec::new();
        while let Some(word) = pods.next_word(known) {
            match word {
                WorkloadsWord::Pods(told) => {
                    words.push(told.boots.len());
                    runner.replace(told);
                }
                WorkloadsWord::Changed(told) => {
                    words.push(told.boots.len());
                    runner.update(told);
                }
                WorkloadsWord::Notices(told) => runner.add(told, &View::default()),
            }
        }
        words
    }

    #[test]
    fn a_word_about_one_pod_among_many_has_its_unit_alone() {
        let (mut pods, mut runner) = (ListeningPods::default(), KnownWorkloads::default());
        for unit in 0..10_000 {
            pods.listens(&of(unit, "web"), "1".to_owned());
        }
        let told = pods.told();
        let mut known = WorkloadsKnown { pods: told.version, notices: 0 };
        runner.replace(told);
        runner.changes();
        pods.listens(&of(7_000, "web"), "2".to_owned());
        assert_eq!(tell(&pods, &mut known, &mut runner), [1]);
        assert_eq!(runner.changes().unwrap().0, [of(7_000, "web").0].into());
        // An end is told with the next start, and the unit with its other pods.
        pods.ended(&of(3, "web"));
        assert_eq!(tell(&pods, &mut known, &mut runner), [0; 0]);
        pods.listens(&of(7_000, "side"), "1".to_owned());
        assert_eq!(tell(&pods, &mut known, &mut runner), [2]);
        assert!(runner.of(&of(3, "web").0).is_none());
        assert_eq!(runner.of(&of(7_000, "web").0).unwrap().len(), 2);
        // A runner that lags far behind is told of all.
        for unit in 0..2_000 {
            pods.listens(&of(unit, "web"), "3".to_owned());
        }
        assert_eq!(tell(&pods, &mut known, &mut runner), [10_000]);
        assert!(pods.changes.versions.len() <= CHANGES_KEPT);
    }

    #[test]
    fn a_word_after_a_lost_one_tells_nothing_until_all_since_is_told() {
        let (mut pods, mut runner) = (ListeningPods::default(), KnownWorkloads::default());
        let mut known = WorkloadsKnown::default();
        pods.listens(&of(0, "web"), "1".to_owned());
        pods.next_word(&mut known).unwrap();
        pods.listens(&of(1, "web"), "1".to_owned());
        tell(&pods, &mut known, &mut runner);
        assert!(runner.changes().is_none() && runner.delivered() == WorkloadsKnown::default());
        known = runner.delivered();
        assert_eq!(tell(&pods, &mut known, &mut runner), [2]);
        assert_eq!(runner.changes().unwrap().0.len(), 2);
    }

    proptest! {
        /// Steps: a start, an end, a notice, words, a lost word, another runner.
        #[test]
        fn a_runner_that_is_told_of_changes_knows_what_one_that_is_told_all_knows(
            steps in proptest::collection::vec((0..12u8, 0..4u64, any::<bool>()), 0..200)
        ) {
            let (mut pods, mut runner) = (ListeningPods::default(), KnownWorkloads::default());
            let mut known = WorkloadsKnown::default();
            for (number, (step, unit, second)) in (1u64..).zip(steps) {
                let pod = of(unit, if second { "web" } else { "side" });
                match step {
                    0..4 => pods.listens(&pod, number.to_string()),
                    4..6 => drop(pods.ended(&pod)),
                    6..8 => drop(pods.add_notice(&pod, number, custom(1))),
                    8 => drop(pods.next_word(&mut known)),
                    9 => {
                        known = runner.delivered();
                    }
                    10 => {
                        let told = pods.told();
                        known = WorkloadsKnown { pods: told.version, notices: 0 };
                        runner = KnownWorkloads::default();
                        runner.replace(told);
                    }
                    _ => drop(tell(&pods, &mut known, &mut runner)),
                }
                if let Some((_, heard)) = runner.changes() {
                    runner.told_units(heard);
                }
            }
            // The next start is told with all before it.
            known = runner.delivered();
            pods.listens(&of(9, "web"), "last".to_owned());
            tell(&pods, &mut known, &mut runner);
            let mut whole = KnownWorkloads::default();
            whole.replace(pods.told());
            for unit in (0..4).chain([9]) {
                let unit = of(unit, "web").0;
                let boots = |known: &KnownWorkloads| {
                    let workloads = known.of(&unit).cloned().unwrap_or_default().into_iter();
                    workloads.map(|(name, listening)| (name, listening.boot_id)).collect::<Vec<_>>()
                };
                prop_assert_eq!(boots(&runner), boots(&whole));
            }
        }

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
