//! The states of a model's workloads on this agent, as the controller is to be told of them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::SocketAddr,
    time::Duration,
};

use parking_lot::Mutex;
use periapt_host_api::{
    Digest, Timestamp, UnitName,
    container::{
        ContainerReport, ContainerState, ContainerUsage, MAX_TAKEN_PORTS, PodState, ReportedDriver,
        TakenPort, UnitTraffic, WorkloadsReport,
    },
    size,
};
use tokio::{sync::Notify, time::Instant};

use super::PodId;

/// The reports of a unit that follow each other without a pause: as many as a deployment takes.
const BURST: u32 = 16;

/// The time after which a unit has earned another report. A workload that changes without end writes to the controller's
/// log three times a minute.
const EARNED: Duration = Duration::from_secs(20);

/// The most bytes of the reports of one call, as JSON, but for the last one.
const CALL_BYTES: usize = 256 << 10;

/// The most units of one call.
const CALL_UNITS: usize = 32;

/// The states of the workloads of one model. What changes is told once; changes that follow each other are told together.
#[derive(Debug, Default)]
pub(crate) struct WorkloadStates {
    /// The time since which processor time and traffic are counted.
    since: Timestamp,
    states: Mutex<States>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct States {
    units: BTreeMap<UnitName, UnitState>,
    /// The units whose state the controller may not know, in the order of their changes. Each is there at most once, and none
    /// is in `later` as well.
    changed: VecDeque<UnitName>,
    /// The units among them that have to wait, with the time until then.
    later: BTreeSet<(Instant, UnitName)>,
    /// The number of looks at a unit so far, to be told.
    #[cfg(test)]
    looked_at: usize,
}

/// The state of one unit's workloads.
#[derive(Debug)]
struct UnitState {
    now: WorkloadsReport,
    told: WorkloadsReport,
    /// The reports that the unit may make at once, and the time since which it earns another one.
    credit: u32,
    since: Instant,
    /// True while the unit is among those that changed, or among those that have to wait.
    is_queued: bool,
}

/// The states that are due to be told.
#[derive(Debug, Default)]
pub(super) struct DueStates {
    /// The units with their states.
    pub(super) units: Vec<(UnitName, WorkloadsReport)>,
    /// The time of the next attempt: at once if the call had no room for all.
    pub(super) again: Option<Instant>,
}

impl WorkloadStates {
    /// Creates the states of workloads whose processor time and traffic are counted since this time.
    pub(super) fn new(since: Timestamp) -> Self {
        Self { since, ..Self::default() }
    }

    /// Adds a container that is being started, or replaces one.
    pub(super) fn start(&self, pod: &PodId, driver: Option<ReportedDriver>, content: Option<Digest>) {
        let (state, pod_state) = (ContainerState::Starting, PodState::default());
        let mut new = ContainerReport { driver, content, state, starts: 0, pod: pod_state, usage: None };
        self.change(&pod.0, |report| {
            new.usage = report.containers.get(&pod.1).and_then(|before| before.usage);
            report.containers.insert(pod.1.clone(), new);
            report.counted_since = Some(self.since);
        });
    }

    /// Records that a container runs.
    pub(super) fn runs(&self, pod: &PodId, boot_id: &str) {
        self.container(pod, |container| {
            container.starts = container.starts.saturating_add(1);
            container.state = ContainerState::Running { boot_id: boot_id.to_owned() };
            container.pod = PodState::default();
        });
    }

    /// Records the reason why a container does not run.
    pub(super) fn down(&self, pod: &PodId, reason: &str) {
        self.container(pod, |container| {
            container.state = ContainerState::down(reason);
            container.pod = PodState::default();
            if let Some(usage) = &mut container.usage {
                usage.memory = 0;
            }
        });
    }

    /// Records the use that a container makes of the host, and the traffic of its unit.
    pub(super) fn uses(&self, pod: &PodId, usage: ContainerUsage, traffic: UnitTraffic) {
        self.change(&pod.0, |report| {
            if let Some(container) = report.containers.get_mut(&pod.1) {
                container.usage = Some(usage);
                report.traffic = traffic;
            }
        });
    }

    /// Returns the last recorded use of a container.
    pub(super) fn used(&self, (unit, container): &PodId) -> Option<ContainerUsage> {
        let states = self.states.lock();
        states.units.get(unit)?.now.containers.get(container)?.usage
    }

    /// Records the state of a container's services and checks.
    pub(super) fn pod(&self, pod: &PodId, state: PodState) {
        self.container(pod, |container| container.pod = state.bounded());
    }

    /// Removes a container.
    pub(super) fn ended(&self, pod: &PodId) {
        self.change(&pod.0, |report| {
            report.containers.remove(&pod.1);
            if report.containers.is_empty() {
                report.traffic = UnitTraffic::default();
                report.counted_since = None;
            }
        });
    }

    /// Records the reason why the agent cannot listen on a unit's port; none if it can, or need not any more.
    pub(crate) fn port(&self, unit: &UnitName, address: SocketAddr, reason: Option<&str>) {
        let taken = reason.map(|reason| TakenPort::new(address, reason));
        let ip = address.ip().to_string();
        self.change(unit, |report| {
            report.taken_ports.retain(|taken| taken.port != address.port() || taken.address != ip);
            report.taken_ports.extend(taken.filter(|_| report.taken_ports.len() < MAX_TAKEN_PORTS));
        });
    }

    fn container(&self, (unit, container): &PodId, change: impl FnOnce(&mut ContainerReport)) {
        self.change(unit, |report| {
            if let Some(container) = report.containers.get_mut(container) {
                change(container);
            }
        });
    }

    fn change(&self, unit: &UnitName, change: impl FnOnce(&mut WorkloadsReport)) {
        let mut states = self.states.lock();
        let States { units, changed, .. } = &mut *states;
        let state = units.entry(unit.clone()).or_insert_with(UnitState::new);
        change(&mut state.now);
        if state.now != state.told {
            state.queue(unit, changed);
            drop(states);
            self.changed.notify_one();
        } else if state.is_over() {
            units.remove(unit);
        }
    }

    /// Waits for a change.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Takes the states that are due to be told, as many as one call has room for. The cost depends on them, and not on the
    /// number of units.
    pub(super) fn take_due(&self, now: Instant) -> DueStates {
        let mut due = DueStates::default();
        let mut states = self.states.lock();
        while states.later.first().is_some_and(|(at, _)| *at <= now) {
            let Some((_, unit)) = states.later.pop_first() else { break };
            states.changed.push_back(unit);
        }
        let mut bytes = 0;
        while due.units.len() < CALL_UNITS && bytes < CALL_BYTES {
            let Some(unit) = states.changed.pop_front() else { break };
            #[cfg(test)]
            {
                states.looked_at += 1;
            }
            let States { units, later, .. } = &mut *states;
            let Some(state) = units.get_mut(&unit) else { continue };
            if state.now == state.told {
                state.is_queued = false;
                if state.is_over() {
                    units.remove(&unit);
                }
                continue;
            }
            match state.earn(now) {
                Ok(()) => {
                    state.is_queued = false;
                    bytes = bytes.saturating_add(size::of_json(&state.now));
                    due.units.push((unit, state.now.clone()));
                }
                Err(at) => {
                    later.insert((at, unit));
                }
            }
        }
        due.again = match states.changed.is_empty() {
            true => states.later.first().map(|(at, _)| *at),
            false => Some(now),
        };
        due
    }

    /// Records that the controller was told a state.
    pub(super) fn told(&self, unit: &UnitName, told: WorkloadsReport) {
        let mut states = self.states.lock();
        let Some(state) = states.units.get_mut(unit) else { return };
        state.told = told;
        if state.is_over() {
            states.units.remove(unit);
        }
    }

    /// Records that the controller was not told the state of a unit, which is due again later.
    pub(super) fn not_told(&self, unit: &UnitName) {
        let mut states = self.states.lock();
        let States { units, changed, .. } = &mut *states;
        if let Some(state) = units.get_mut(unit) {
            state.queue(unit, changed);
        }
    }
}

impl UnitState {
    fn new() -> Self {
        let (now, told) = (WorkloadsReport::default(), WorkloadsReport::default());
        Self { now, told, credit: BURST, since: Instant::now(), is_queued: false }
    }

    /// Adds the unit to those that changed, unless it waits already.
    fn queue(&mut self, unit: &UnitName, changed: &mut VecDeque<UnitName>) {
        if !std::mem::replace(&mut self.is_queued, true) {
            changed.push_back(unit.clone());
        }
    }

    /// Returns true if the unit has no workloads, the controller knows it, and nothing else is to be done.
    fn is_over(&self) -> bool {
        let nothing = WorkloadsReport::default();
        !self.is_queued && self.now == nothing && self.told == nothing
    }

    /// Takes the right to one report, or returns the time at which there is one.
    fn earn(&mut self, now: Instant) -> Result<(), Instant> {
        while self.credit < BURST && now.duration_since(self.since) >= EARNED {
            self.credit += 1;
            self.since += EARNED;
        }
        if self.credit == BURST {
            self.since = now;
        }
        match self.credit.checked_sub(1) {
            Some(left) => {
                self.credit = left;
                Ok(())
            }
            None => Err(self.since + EARNED),
        }
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::container::{ReportedStartup, ServiceCurrent, ServiceState};

    use super::*;

    fn pod(unit: &str) -> PodId {
        (unit.parse().unwrap(), "web".parse().unwrap())
    }

    fn service(restarts: u32) -> PodState {
        let (startup, current) = (ReportedStartup::Enabled, ServiceCurrent::Backoff);
        let service = ServiceState { name: "web".to_owned(), startup, current, restarts, cannot_start: None };
        PodState { services: vec![service], ..PodState::default() }
    }

    /// Tells all that is due, and returns the number of reports.
    fn tell(states: &WorkloadStates, now: Instant) -> usize {
        let mut number = 0;
        loop {
            let due = states.take_due(now);
            number += due.units.len();
            for (unit, state) in due.units {
                states.told(&unit, state);
            }
            if due.again != Some(now) {
                return number;
            }
        }
    }

    #[tokio::test]
    async fn a_state_is_told_when_it_differs_from_what_was_told() {
        let states = WorkloadStates::default();
        let (one, now) = (pod("app/0"), Instant::now());
        states.start(&one, Some(ReportedDriver::Wasm), None);
        states.runs(&one, "b1");
        assert_eq!(tell(&states, now), 1);
        states.pod(&one, PodState::default());
        states.down(&pod("app/1"), "nobody knows of it");
        assert_eq!(tell(&states, now), 0);
        states.down(&one, "it ended");
        let due = states.take_due(now);
        let container = &due.units[0].1.containers[&one.1];
        assert_eq!((container.state.clone(), container.starts), (ContainerState::down("it ended"), 1));
        states.not_told(&one.0);
        assert_eq!(tell(&states, now), 1);
        states.ended(&one);
        assert_eq!((tell(&states, now), states.states.lock().units.len()), (1, 0));
    }

    #[tokio::test]
    async fn a_workload_that_changes_without_end_is_told_of_seldom_and_keeps_no_other_from_it() {
        let states = WorkloadStates::default();
        let (wild, calm) = (pod("app/0"), pod("app/1"));
        states.start(&wild, None, None);
        let (began, mut number) = (Instant::now(), 0);
        for second in 0..600 {
            states.pod(&wild, service(second));
            number += tell(&states, began + Duration::from_secs(second.into()));
        }
        assert!((40..=50).contains(&number), "{number}");
        states.start(&calm, None, None);
        // The other one's next turn has not come.
        assert_eq!(tell(&states, began + Duration::from_secs(599)), 1);
    }

    #[tokio::test]
    async fn what_a_container_uses_is_told_with_its_unit_and_goes_on_over_its_starts() {
        let states = WorkloadStates::new(Timestamp::MAX);
        let (one, now) = (pod("app/0"), Instant::now());
        states.uses(&one, ContainerUsage::default(), UnitTraffic { sent: 1, ..UnitTraffic::default() });
        assert_eq!(tell(&states, now), 0, "nobody knows of it");
        states.start(&one, None, None);
        let usage = ContainerUsage { memory: 5, cpu_ms: 600, storage: 7 };
        let traffic = UnitTraffic { connections: 1, received: 2, sent: 3 };
        states.uses(&one, usage, traffic);
        let due = states.take_due(now).units.remove(0).1;
        assert_eq!((due.containers[&one.1].usage, due.traffic), (Some(usage), traffic));
        assert_eq!(due.counted_since, Some(Timestamp::MAX));
        states.told(&one.0, due);
        states.uses(&one, usage, traffic);
        assert_eq!(tell(&states, now), 0, "it is no news");
        states.down(&one, "it ended");
        states.start(&one, None, None);
        assert_eq!(states.used(&one), Some(ContainerUsage { memory: 0, ..usage }));
        states.ended(&one);
        assert_eq!((tell(&states, now), states.states.lock().units.len()), (1, 0));
    }

    #[tokio::test]
    async fn many_units_are_told_in_calls_of_bounded_size() {
        let states = WorkloadStates::default();
        for number in 0..100 {
            states.start(&pod(&format!("app/{number}")), None, None);
        }
        let now = Instant::now();
        let due = states.take_due(now);
        assert_eq!((due.units.len(), due.again), (CALL_UNITS, Some(now)));
        assert_eq!(tell(&states, now), 100 - CALL_UNITS);
    }

    /// Returns the looks at units that the act takes.
    fn looks(states: &WorkloadStates, act: impl FnOnce()) -> usize {
        let before = states.states.lock().looked_at;
        act();
        states.states.lock().looked_at - before
    }

    #[tokio::test]
    async fn a_change_of_one_unit_among_many_is_told_by_one_look() {
        let states = WorkloadStates::default();
        let many: Vec<_> = (0..10_000).map(|number| pod(&format!("app/{number}"))).collect();
        let mut now = Instant::now();
        for pod in &many {
            states.start(pod, None, None);
        }
        let first = looks(&states, || assert_eq!(tell(&states, now), 10_000));
        assert_eq!(first, 10_000, "in parts, none of which looks at the units of another");
        now += Duration::from_secs(1);
        assert_eq!(looks(&states, || assert_eq!(tell(&states, now), 0)), 0);
        states.down(&many[7_000], "it ended");
        assert_eq!(looks(&states, || assert_eq!(tell(&states, now), 1)), 1);
        // Some have told as much as they may at once, and wait.
        let wild = &many[..500];
        for round in 0..=BURST {
            for pod in wild {
                states.down(pod, &format!("it ended {round} times"));
            }
            tell(&states, now);
        }
        states.down(&many[9_000], "it ended");
        assert_eq!(looks(&states, || assert_eq!(tell(&states, now), 1)), 1, "and none of those that wait");
        let all = looks(&states, || assert_eq!(tell(&states, now + EARNED), wild.len()));
        assert_eq!(all, wild.len());
    }

    #[tokio::test]
    async fn units_are_told_in_the_order_of_their_changes() {
        let states = WorkloadStates::default();
        let now = Instant::now();
        for number in 0..CALL_UNITS {
            states.start(&pod(&format!("zebra/{number}")), None, None);
        }
        states.start(&pod("app/0"), None, None);
        states.runs(&pod("zebra/0"), "b1");
        let due = states.take_due(now);
        assert!(due.units.iter().all(|(unit, _)| unit.application().as_str() == "zebra"));
        // Another change does not put a unit before those that have waited longer.
        states.runs(&pod("zebra/1"), "b1");
        let due = states.take_due(now).units;
        let names: Vec<_> = due.iter().map(|(unit, _)| unit.to_string()).collect();
        assert_eq!(names, ["app/0", "zebra/1"]);
    }

    #[tokio::test]
    async fn a_unit_that_comes_and_goes_while_nobody_is_told_waits_once() {
        let states = WorkloadStates::default();
        let one = pod("app/0");
        for _ in 0..100 {
            states.start(&one, None, None);
            states.ended(&one);
        }
        assert_eq!(states.states.lock().changed.len(), 1);
        assert_eq!(tell(&states, Instant::now()), 0);
        assert!(states.states.lock().units.is_empty());
    }

    #[tokio::test]
    async fn a_port_is_taken_until_the_agent_can_listen_on_it() {
        let states = WorkloadStates::default();
        let (unit, address) = ("app/0".parse().unwrap(), "127.0.0.1:80".parse().unwrap());
        states.port(&unit, address, Some("another process of the host listens there"));
        states.port(&unit, address, Some("unit b/0 has the same port open"));
        let due = states.take_due(Instant::now());
        let expected = [TakenPort::new(address, "unit b/0 has the same port open")];
        assert_eq!(due.units[0].1.taken_ports, expected);
        states.port(&unit, address, None);
        assert!(states.states.lock().units.is_empty());
    }
}
