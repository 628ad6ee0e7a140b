//! The pods of an agent's host. In each a real supervisor decides, on virtual time (`supervised.rs`).
//!
//! The way from a pod to its unit is the agent's own code, too: the keeper's [`ListeningPods`], its words, and the
//! runner's [`KnownWorkloads`]. Pods outlive both. The next keeper takes those over whose start their unit knows.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use periapt_host_api::{
    ContainerName, UnitName,
    notice::{WaitingNotices, WorkloadNotice},
    view::View,
};
use periapt_pebble::{
    PodAnswer, PodCaller, PodInput, PodLimits, PodOutput, PodRequest, PodSettings, PodTime, ProcessId,
    RequestId, Signal, Spawn, Supervisor,
};
use periapt_uniter::{KnownWorkloads, ListeningPods, PodId, UnitWorkloads, WorkloadsKnown, WorkloadsWord};

use crate::{LabError, clock::Clock, transport::transported};

mod supervised;

use supervised::Core;
pub(crate) use supervised::{PodScenario, PodWorld};
pub use supervised::{ProbeAnswer, ProcessLife};

/// The pause before a keeper starts a pod again that has ended: the shortest one of a real keeper.
const RESTART_PAUSE: Duration = Duration::from_millis(500);

/// The most events of an agent's pods at one passing of time. More are a core that does not let time pass.
const MAX_EVENTS: usize = 100_000;

/// A client with all rights, as hooks are.
const OWNER: PodCaller = PodCaller { user_id: Some(0), is_owner: true };

/// A pod.
#[derive(Debug, Clone)]
struct Pod {
    boot_id: String,
    /// The notices that it has for keepers.
    notices: WaitingNotices,
    /// The number of the last notice that the keeper has. None if an earlier keeper started the pod.
    reported: Option<u64>,
    /// None if a test plays the pod.
    core: Option<Core>,
}

/// The pods of a host, and what keeper and runner know of them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pods {
    pods: BTreeMap<PodId, Pod>,
    /// The number of requests to all pods so far.
    requests: u64,
    /// The keeper's knowledge.
    listening: ListeningPods,
    /// The times at which the keeper starts pods again that have ended.
    restarts: BTreeMap<PodId, Duration>,
    /// The extent to which the keeper has told the runner.
    told: WorkloadsKnown,
    /// The runner's knowledge.
    known: KnownWorkloads,
    /// The units that have not been told of a change.
    changed: BTreeSet<UnitName>,
}

impl Pods {
    /// Ends keeper and runner. The pods go on.
    pub(crate) fn keeper_ends(&mut self) {
        self.listening = ListeningPods::default();
        self.restarts.clear();
        self.pods.values_mut().for_each(|pod| pod.reported = None);
        self.runner_begins();
    }

    /// Ends all pods, with their host.
    pub(crate) fn host_ends(&mut self) {
        self.pods.clear();
        self.keeper_ends();
    }

    /// Starts another runner. Its first message has the pods.
    pub(crate) fn runner_begins(&mut self) {
        let told = self.listening.told();
        self.told = WorkloadsKnown { pods: told.version, notices: 0 };
        self.known = KnownWorkloads::default();
        self.known.replace(told);
        self.changed.clear();
        self.hear();
    }

    fn hear(&mut self) {
        if let Some((changed, known)) = self.known.changes() {
            self.changed.extend(changed);
            self.known.told_units(known);
        }
    }

    /// Follows the keeper's view: forgets notices of which charms were told, takes over the pods of an earlier keeper or
    /// ends them, and ends those whose unit is gone.
    pub(crate) fn observe(&mut self, view: &View) {
        if !self.listening.are_quiet() {
            for unit in view.units.values() {
                self.listening.told_charm(&unit.name, &unit.record.workloads);
            }
        }
        let left = self.pods.iter().filter(|(_, pod)| pod.reported.is_none());
        for id in left.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            let told = view.units.get(&id.0).and_then(|unit| unit.record.workloads.get(&id.1));
            match self.pods.get(&id) {
                Some(pod) if told.is_some_and(|told| told.boot_id == pod.boot_id) => self.listens(&id),
                _ => drop(self.pods.remove(&id)),
            }
        }
        for (id, _) in self.pods.extract_if(.., |id, _| !view.units.contains_key(&id.0)) {
            self.listening.ended(&id);
        }
    }

    /// Starts a pod for each container that units' charms declare.
    pub(crate) fn start_all(&mut self, view: &View, world: &mut PodWorld<'_>) {
        let now = world.now();
        let mut wanted = Vec::new();
        for unit in view.units.values() {
            let application = view.applications.get(unit.name.application());
            let charm = unit.record.charm.or_else(|| Some(application?.charm));
            let meta = charm.and_then(|charm| view.charms.get(&charm.digest)).map(|charm| &charm.meta);
            let containers = meta.into_iter().flat_map(|meta| meta.containers.keys());
            wanted.extend(containers.map(|container| (unit.name.clone(), container.clone())));
        }
        wanted.retain(|id| !self.pods.contains_key(id) && self.restarts.get(id).is_none_or(|at| *at <= now));
        for id in wanted {
            let boot_id = format!("{:016x}", world.random.number());
            let settings = PodSettings {
                version: "laboratory".to_owned(),
                boot_id: boot_id.clone(),
                seed: world.random.number(),
                limits: PodLimits::default(),
            };
            self.start(&id, boot_id, Some(Core::new(Supervisor::new(settings), now)));
        }
    }

    /// Starts a pod that a test plays, in the place of an earlier one.
    pub(crate) fn play(&mut self, id: &PodId, boot_id: String) {
        self.start(id, boot_id, None);
    }

    fn start(&mut self, id: &PodId, boot_id: String, core: Option<Core>) {
        self.restarts.remove(id);
        let pod = Pod { boot_id, notices: WaitingNotices::default(), reported: None, core };
        self.pods.insert(id.clone(), pod);
        self.listens(id);
    }

    /// Reports to the keeper that a pod listens, and all its notices.
    fn listens(&mut self, id: &PodId) {
        let Some(pod) = self.pods.get_mut(id) else { return };
        pod.reported = Some(0);
        self.listening.listens(id, pod.boot_id.clone());
        self.report(id);
    }

    /// Reports the notices of a pod that the keeper does not have.
    fn report(&mut self, id: &PodId) {
        let Some(pod) = self.pods.get_mut(id) else { return };
        let Some(reported) = pod.reported else { return };
        for (number, waiting) in pod.notices.after(reported) {
            self.listening.add_notice(id, number, waiting.notice.clone());
            pod.reported = Some(number);
        }
    }

    /// Adds a notice of a pod that a test plays.
    pub(crate) fn notify(&mut self, id: &PodId, notice: WorkloadNotice) -> Result<(), LabError> {
        let pod = self.pods.get_mut(id).ok_or_else(|| LabError::unknown("workload", &id.1))?;
        pod.notices.push(notice);
        self.report(id);
        Ok(())
    }

    /// Ends a pod with all its processes.
    pub(crate) fn end(&mut self, id: &PodId, clock: Clock) {
        let Some(pod) = self.pods.remove(id) else { return };
        self.listening.ended(id);
        if pod.reported.is_some() && pod.core.is_some() {
            let now = Duration::from_millis(clock.boot_ms());
            self.restarts.insert(id.clone(), now.saturating_add(RESTART_PAUSE));
        }
    }

    /// Lets the pods live until now.
    pub(crate) fn run(&mut self, world: &mut PodWorld<'_>) -> Result<(), LabError> {
        for _ in 0..MAX_EVENTS {
            let next = self.pods.iter().filter_map(|(id, pod)| Some((pod.core.as_ref()?.due()?, id)));
            let Some((at, id)) = next.min().filter(|(at, _)| *at <= world.now()) else { return Ok(()) };
            let id = id.clone();
            let core = self.pods.get_mut(&id).and_then(|pod| pod.core.as_mut());
            let Some(event) = core.map(|core| core.next_event(at)) else { return Ok(()) };
            self.step(&id, at, event, world);
        }
        Err(LabError::PodsNeverRest { events: MAX_EVENTS })
    }

    /// Hands an event to a core, and carries out its orders.
    fn step(&mut self, id: &PodId, at: Duration, event: PodInput, world: &mut PodWorld<'_>) {
        let date = world.date(at);
        let Some(pod) = self.pods.get_mut(id) else { return };
        let Some(core) = &mut pod.core else { return };
        let now = PodTime { since_start: at.saturating_sub(core.born), date };
        let mut events = VecDeque::from([event]);
        let mut is_over = false;
        while let Some(event) = events.pop_front() {
            for order in core.supervisor.step(now, event) {
                match order {
                    PodOutput::Notice(notice) => {
                        pod.notices.push(notice);
                    }
                    PodOutput::Shutdown(_) => is_over = true,
                    other => events.extend(core.perform(other, at, world)),
                }
            }
        }
        match is_over {
            true => self.end(id, world.clock),
            false => self.report(id),
        }
    }

    /// Sends a request to a core. [`Self::answer`] has the answer.
    pub(crate) fn ask(
        &mut self,
        id: &PodId,
        request: PodRequest,
        world: &mut PodWorld<'_>,
    ) -> Result<RequestId, LabError> {
        self.run(world)?;
        self.requests += 1;
        let number = RequestId(self.requests);
        self.core(id)?.answers.insert(number, None);
        let asked = PodInput::Request { id: number, caller: OWNER, request };
        self.step(id, world.now(), asked, world);
        Ok(number)
    }

    /// Takes the answer to a request; none while the core lets the client wait.
    pub(crate) fn answer(&mut self, id: &PodId, request: RequestId) -> Result<Option<PodAnswer>, LabError> {
        let answers = &mut self.core(id)?.answers;
        match answers.remove(&request) {
            Some(Some(answer)) => Ok(Some(answer?)),
            Some(None) => {
                answers.insert(request, None);
                Ok(None)
            }
            None => Err(LabError::unknown("request to this start of container", &id.1)),
        }
    }

    /// Closes a request whose client does not wait any more.
    pub(crate) fn give_up(&mut self, id: &PodId, request: RequestId, world: &mut PodWorld<'_>) {
        if self.core(id).is_ok_and(|core| core.answers.remove(&request).is_some()) {
            self.step(id, world.now(), PodInput::Gone(request), world);
        }
    }

    fn core(&mut self, id: &PodId) -> Result<&mut Core, LabError> {
        let core = self.pods.get_mut(id).and_then(|pod| pod.core.as_mut());
        core.ok_or_else(|| LabError::unknown("container that listens", &id.1))
    }

    /// Kills the processes of a program. Returns their number.
    pub(crate) fn kill(
        &mut self,
        id: &PodId,
        program: &str,
        world: &mut PodWorld<'_>,
    ) -> Result<usize, LabError> {
        self.run(world)?;
        let processes = self.core(id)?.processes.iter();
        let of_program =
            processes.filter(|(_, process)| process.spawn.command.first().is_some_and(|it| it == program));
        let killed: Vec<ProcessId> = of_program.map(|(process, _)| *process).collect();
        for process in &killed {
            let event = self.core(id)?.exit(*process, 128 + Signal::KILL.number());
            self.step(id, world.now(), event, world);
        }
        Ok(killed.len())
    }

    /// Carries the keeper's words to the runner. Returns true if there were any.
    pub(crate) fn tell(&mut self, view: &View) -> Result<bool, LabError> {
        let mut has_told = false;
        while let Some(word) = self.listening.next_word(&mut self.told) {
            match word {
                WorkloadsWord::Pods(told) => self.known.replace(transported("a word about pods", &told)?),
                WorkloadsWord::Changed(told) => {
                    self.known.update(transported("a word about some units' pods", &told)?);
                }
                WorkloadsWord::Notices(told) => {
                    self.known.add(transported("a word about notices", &told)?, view);
                }
            }
            has_told = true;
        }
        self.hear();
        Ok(has_told)
    }

    /// Returns true once after each change of a unit's workloads.
    pub(crate) fn take_change(&mut self, unit: &UnitName) -> bool {
        self.changed.remove(unit)
    }

    /// Returns the workloads beside a unit, as the runner knows them.
    pub(crate) fn of(&self, unit: &UnitName) -> UnitWorkloads {
        self.known.of(unit).cloned().unwrap_or_default()
    }

    /// Returns true if a unit has pods.
    pub(crate) fn has(&self, unit: &UnitName) -> bool {
        self.pods.keys().any(|(of, _)| of == unit)
    }

    /// Returns the id of a pod's start.
    pub(crate) fn boot_id(&self, id: &PodId) -> Option<&str> {
        self.pods.get(id).map(|pod| pod.boot_id.as_str())
    }

    /// Returns the notices of a pod by number, those that repeated once.
    pub(crate) fn notices(&self, id: &PodId) -> Vec<(u64, WorkloadNotice)> {
        let notices = self.pods.get(id).into_iter().flat_map(|pod| pod.notices.after(0));
        notices.map(|(number, waiting)| (number, waiting.notice.clone())).collect()
    }

    /// Returns the processes of a pod, in the order of their starts.
    pub(crate) fn processes(&self, id: &PodId) -> Vec<Spawn> {
        let core = self.pods.get(id).and_then(|pod| pod.core.as_ref());
        core.into_iter()
            .flat_map(|core| core.processes.values())
            .map(|process| process.spawn.clone())
            .collect()
    }

    /// Returns the times of the pods' next events, in milliseconds on the clock of leases.
    pub(crate) fn wakes_at_ms(&self) -> impl Iterator<Item = u64> {
        let cores = self.pods.values().filter_map(|pod| pod.core.as_ref()?.due());
        let due = cores.chain(self.restarts.values().copied());
        due.map(|at| u64::try_from(at.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// Parses the name of a pod.
pub(crate) fn pod_id(unit: &str, container: &str) -> Result<PodId, LabError> {
    let container: ContainerName = container.parse()?;
    Ok((unit.parse()?, container))
}
