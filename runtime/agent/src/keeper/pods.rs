//! The pods of one model on this host: a process for each container that a unit's charm declares. The keeper starts a pod
//! when the unit appears, starts it again when it ends by itself, and ends it with the unit.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use periapt_hook::WorkloadTarget;
use periapt_host_api::{
    ApplicationName, ContainerName, ModelUuid, Timestamp, UnitName,
    charm::MAX_CONTAINERS,
    pod::{DialOrder, PodStream},
    view::{FrameLine, ViewEntity},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

mod counter;
mod deleted;
mod held;
mod life;
mod limits;
mod lock;
mod memory;
mod needs;
mod note;
mod process;
mod reasons;
mod report;
mod room;
mod setup;
mod starter;
mod states;
mod traffic;
mod trial;
mod usage;
mod wanted;

pub(crate) use counter::StorageCounter;
pub(crate) use held::HeldPods;
use life::PodBoard;
use limits::SetLimits;
pub(crate) use memory::HostMemory;
pub(crate) use periapt_uniter::{ListeningPods, PodId};
pub(crate) use process::PodProgram;
pub(crate) use reasons::{PodReasons, tell};
pub(crate) use report::report;
use setup::HeldImage;
pub(crate) use setup::{ImageArchives, PodImages};
pub(crate) use starter::{PodFiles, PodSoftware, PodStarter, forget_earlier};
pub(crate) use states::WorkloadStates;
pub(crate) use traffic::{CountedTraffic, ModelTraffic};
pub(crate) use trial::{for_status, try_container};
use wanted::{ChangedPods, WantedPods};

/// The streams that wait for one pod. Further callers are refused: each waits for at most [`OPENS_WITHIN`].
const WAITING: usize = 64;

/// The time in which a pod opens a stream: somewhat more than the pod gives its workload.
const OPENS_WITHIN: Duration = Duration::from_secs(8);

/// A request for a stream.
struct StreamRequest {
    target: PodStream,
    answer: oneshot::Sender<Result<UnixStream, String>>,
}

/// A call of a unit's workload to another unit.
#[derive(Debug)]
pub(crate) struct PodDial {
    /// The unit whose workload calls.
    pub(crate) unit: UnitName,
    /// The target, as the workload names it.
    pub(crate) order: DialOrder,
    /// The stream on which the workload waits for the answer. Dropping it refuses the call.
    pub(crate) stream: OwnedFd,
}

/// The way to a pod.
#[derive(Debug, Clone)]
enum Door {
    /// The pod's requests.
    Pod(mpsc::Sender<StreamRequest>),
    /// None, for a reason in words: this agent runs no such pods.
    Closed(&'static str),
}

/// The ways to the pods of each unit.
type Doors = Arc<Mutex<BTreeMap<UnitName, BTreeMap<ContainerName, Door>>>>;

/// The way to the pods of a model.
#[derive(Debug, Clone)]
pub(crate) struct PodStreams {
    doors: Doors,
    traffic: ModelTraffic,
}

/// A pod that the keeper starts, and starts again when it ends.
#[derive(Debug)]
struct Running {
    software: PodSoftware,
    limits: watch::Sender<SetLimits>,
    ends: CancellationToken,
    /// Cancelled once no process of the pod is left.
    ended: CancellationToken,
}

/// The units for which pods begin and end.
#[derive(Debug, Default)]
pub(crate) struct ChangedPodUnits {
    /// The units that have pods from now on.
    pub(crate) came: Vec<UnitName>,
    /// The units that have no more pods.
    pub(crate) went: Vec<UnitName>,
}

/// The pods of one model. Dropping it kills them; [`Self::end`] ends them in order. Neither touches pods that are left to the
/// next keeper.
#[derive(Debug)]
pub(crate) struct Pods {
    starter: Arc<PodStarter>,
    /// The images of containers; none: they run on the host's files.
    images: Option<PodImages>,
    /// The directory of the units' storage.
    storage: PathBuf,
    wanted: WantedPods,
    running: BTreeMap<UnitName, BTreeMap<ContainerName, Running>>,
    doors: Doors,
    board: PodBoard,
    /// The lives of pods, each of which returns its pod, and the ends of those that nobody wants.
    tasks: JoinSet<Option<PodId>>,
    /// The pods that this agent does not run, and the reasons.
    closed: BTreeMap<UnitName, BTreeMap<ContainerName, &'static str>>,
    /// The pods that end: another one of the same name begins after them.
    ending: BTreeMap<PodId, CancellationToken>,
}

impl Pods {
    /// Creates the pods of a model, whose units' storage is below `storage`. Calls of their workloads go to `dials`, or are
    /// refused if it is full.
    pub(crate) fn new(
        (model, starter): (ModelUuid, Arc<PodStarter>),
        images: Option<PodImages>,
        storage: PathBuf,
        dials: mpsc::Sender<PodDial>,
    ) -> Self {
        Self {
            starter,
            images,
            storage,
            wanted: WantedPods::default(),
            running: BTreeMap::new(),
            doors: Doors::default(),
            board: PodBoard {
                model,
                listening: Arc::default(),
                reasons: Arc::default(),
                states: Arc::new(WorkloadStates::new(Timestamp::now())),
                traffic: ModelTraffic::default(),
                dials,
            },
            tasks: JoinSet::new(),
            closed: BTreeMap::new(),
            ending: BTreeMap::new(),
        }
    }

    /// Returns the way to the pods.
    pub(crate) fn streams(&self) -> PodStreams {
        PodStreams { doors: Arc::clone(&self.doors), traffic: self.board.traffic.clone() }
    }

    /// Returns the pods that listen, and their changes.
    pub(crate) fn listening(&self) -> watch::Receiver<ListeningPods> {
        self.board.listening.subscribe()
    }

    /// Returns the reasons why pods do not run, for the controller.
    pub(crate) fn reasons(&self) -> Arc<PodReasons> {
        Arc::clone(&self.board.reasons)
    }

    /// Returns the states of the pods, for the controller.
    pub(crate) fn states(&self) -> Arc<WorkloadStates> {
        Arc::clone(&self.board.states)
    }

    /// Records the changes of a frame's line, and starts and ends pods after the frame's last one. What a frame costs depends on
    /// the units that it changes, and not on the number of pods.
    pub(crate) fn observe(&mut self, line: &FrameLine) -> ChangedPodUnits {
        self.forget_told_notices(line);
        let Some(changed) = self.wanted.observe(line) else { return ChangedPodUnits::default() };
        self.forget_ended();
        let (units, is_whole) = match changed {
            ChangedPods::Of(units) => (units, false),
            ChangedPods::All => {
                let known = self.running.keys().chain(self.closed.keys()).chain(self.wanted.units());
                (known.cloned().collect::<BTreeSet<_>>(), true)
            }
        };
        let had: BTreeSet<_> =
            units.iter().filter(|unit| self.running.contains_key(*unit)).cloned().collect();
        let wanted: Vec<_> = units.into_iter().map(|unit| (self.software(&unit), unit)).collect();
        // Pods that end make room for those that start.
        for (software, unit) in &wanted {
            self.end_changed(unit, software);
        }
        let mut changed = ChangedPodUnits::default();
        for (software, unit) in wanted {
            self.start_wanted(&unit, software);
            match (had.contains(&unit), self.running.contains_key(&unit)) {
                (false, true) => changed.came.push(unit),
                (true, false) => {
                    self.board.traffic.forget(&unit);
                    changed.went.push(unit);
                }
                (true, true) | (false, false) => {}
            }
        }
        if is_whole {
            self.end_unwanted();
        }
        changed
    }

    /// Forgets the pods whose end nobody needs to wait for any more.
    fn forget_ended(&mut self) {
        while let Some(done) = self.tasks.try_join_next() {
            if let Ok(Some(pod)) = done
                && self.ending.get(&pod).is_some_and(CancellationToken::is_cancelled)
            {
                self.ending.remove(&pod);
            }
        }
    }

    /// Returns the containers of a unit, with what runs in them and what that needs.
    fn software(&self, unit: &UnitName) -> BTreeMap<ContainerName, PodSoftware> {
        let mut wanted = self.wanted.pods_of(unit);
        for (container, software) in &mut wanted {
            match software {
                PodSoftware::Container if self.images.is_some() => {
                    let pod = (unit.clone(), container.clone());
                    *software = PodSoftware::Image(self.wanted.needs(&pod, &self.storage));
                }
                PodSoftware::Workload { mounts, .. } => *mounts = self.wanted.mounts(unit, &self.storage),
                PodSoftware::Container | PodSoftware::Image(_) => {}
            }
        }
        wanted
    }

    /// Ends the pods of a unit that are not wanted as they are, and passes the unit's limits to the others.
    fn end_changed(&mut self, unit: &UnitName, wanted: &BTreeMap<ContainerName, PodSoftware>) {
        let Some(of_unit) = self.running.get_mut(unit) else { return };
        let limits = self.wanted.limits(unit);
        let gone = |container: &ContainerName, running: &mut Running| {
            wanted.get(container) != Some(&running.software)
                || limits.need_restart(&running.limits.borrow(), &running.software)
        };
        for (container, running) in of_unit.extract_if(.., gone) {
            running.ends.cancel();
            let pod = (unit.clone(), container);
            self.board.listening.send_if_modified(|listening| listening.ended(&pod));
            if !wanted.contains_key(&pod.1) {
                self.board.states.ended(&pod);
            }
            self.ending.insert(pod, running.ended);
        }
        for running in of_unit.values() {
            running.limits.send_if_modified(|present| std::mem::replace(present, limits) != limits);
        }
        if of_unit.is_empty() {
            self.running.remove(unit);
        }
    }

    /// Starts the pods of a unit that are wanted and do not run.
    fn start_wanted(&mut self, unit: &UnitName, mut wanted: BTreeMap<ContainerName, PodSoftware>) {
        if let Some(running) = self.running.get(unit) {
            wanted.retain(|container, _| !running.contains_key(container));
        }
        self.close(unit, &wanted);
        for (container, software) in wanted {
            if self.starter.lacks(&software).is_none() {
                let pod = (unit.clone(), container);
                let before = self.ending.remove(&pod);
                self.start(pod, software, before);
            }
        }
    }

    /// Records the reason why this agent runs no pods of some software, for hooks and for the operator. `wanted` are the pods of
    /// the unit that do not run.
    fn close(&mut self, unit: &UnitName, wanted: &BTreeMap<ContainerName, PodSoftware>) {
        let lacks = |(container, software): (&ContainerName, &PodSoftware)| {
            Some((container.clone(), self.starter.lacks(software)?))
        };
        let closed: BTreeMap<_, _> = wanted.iter().filter_map(lacks).collect();
        let before = self.closed.remove(unit).unwrap_or_default();
        if before.is_empty() && closed.is_empty() {
            return;
        }
        let mut doors = self.doors.lock();
        let of_unit = doors.entry(unit.clone()).or_default();
        of_unit.retain(|_, door| matches!(door, Door::Pod(_)));
        of_unit.extend(closed.iter().map(|(container, reason)| (container.clone(), Door::Closed(reason))));
        if of_unit.is_empty() {
            doors.remove(unit);
        }
        drop(doors);
        for (container, &reason) in &closed {
            if !before.contains_key(container) {
                tracing::warn!(%unit, %container, reason, "a workload is not run");
                let pod = (unit.clone(), container.clone());
                self.board.states.start(&pod, None, None);
                self.board.states.down(&pod, reason);
            }
        }
        for container in before.into_keys().filter(|container| !wanted.contains_key(container)) {
            self.board.states.ended(&(unit.clone(), container));
        }
        if !closed.is_empty() {
            self.closed.insert(unit.clone(), closed);
        }
    }

    /// Ends the pods of an earlier keeper that no unit wants.
    fn end_unwanted(&mut self) {
        let unwanted = self.starter.held().unwanted(|model| *model == self.board.model);
        if !unwanted.is_empty() {
            self.tasks.spawn(async move {
                held::end(unwanted).await;
                None
            });
        }
    }

    /// Starts a pod, once the one that it replaces has ended.
    fn start(&mut self, pod: PodId, software: PodSoftware, before: Option<CancellationToken>) {
        let (ends, ended) = (CancellationToken::new(), CancellationToken::new());
        let (door, requests) = mpsc::channel(WAITING);
        self.doors.lock().entry(pod.0.clone()).or_default().insert(pod.1.clone(), Door::Pod(door));
        self.board.states.start(&pod, self.starter.driver(&software), software.content());
        let (limits, limited) = watch::channel(self.wanted.limits(&pod.0));
        let running =
            Running { software: software.clone(), limits, ends: ends.clone(), ended: ended.clone() };
        self.running.entry(pod.0.clone()).or_default().insert(pod.1.clone(), running);
        self.board.traffic.begin(&pod.0);
        let (starter, doors, board) =
            (Arc::clone(&self.starter), Arc::clone(&self.doors), self.board.clone());
        let image = HeldImage::new(self.images.clone());
        let held = self.starter.held().take(self.board.model, &pod, self.wanted.told(&pod));
        self.tasks.spawn(async move {
            let _ended = ended.drop_guard();
            if let Some(before) = before {
                before.cancelled().await;
            }
            life::keep(&starter, (&pod, &software), limited, (image, held), requests, &board, &ends).await;
            starter.forget(board.model, &pod);
            // A pod of the same name may have begun since: what is known of it stays.
            let mut doors = doors.lock();
            if let Some(of_unit) = doors.get_mut(&pod.0)
                && of_unit.get(&pod.1).is_some_and(|door| matches!(door, Door::Pod(door) if door.is_closed()))
            {
                of_unit.remove(&pod.1);
                if of_unit.is_empty() {
                    doors.remove(&pod.0);
                }
                board.listening.send_if_modified(|listening| listening.ended(&pod));
                board.note(&pod, None);
            }
            drop(doors);
            Some(pod)
        });
    }

    /// Removes the notices of which charms have been told by a line of a frame. Nobody needs to hear of that.
    fn forget_told_notices(&self, line: &FrameLine) {
        if self.board.listening.borrow().are_quiet() {
            return;
        }
        self.board.listening.send_if_modified(|listening| {
            for entity in &line.puts {
                if let ViewEntity::Unit(unit) = entity {
                    listening.told_charm(&unit.name, &unit.record.workloads);
                }
            }
            false
        });
    }

    /// Ends all pods in order.
    pub(crate) async fn end(&mut self) {
        for running in std::mem::take(&mut self.running).into_values().flat_map(BTreeMap::into_values) {
            running.ends.cancel();
        }
        self.end_unwanted();
        while self.tasks.join_next().await.is_some() {}
    }
}

impl PodStreams {
    /// Returns the first units of an application that have pods, as many as are asked for.
    pub(crate) fn units_of(&self, application: &ApplicationName, at_most: usize) -> Vec<UnitName> {
        let [first, last] = [0, u32::MAX].map(|number| UnitName::new(application.clone(), number));
        let doors = self.doors.lock();
        let has_pod = |doors: &BTreeMap<_, Door>| doors.values().any(|door| matches!(door, Door::Pod(_)));
        let units = doors.range(first..=last).filter(|(_, doors)| has_pod(doors));
        units.take(at_most).map(|(unit, _)| unit.clone()).collect()
    }

    /// Returns the traffic of a unit, to be counted.
    pub(crate) fn traffic(&self, unit: &UnitName) -> Arc<CountedTraffic> {
        self.traffic.of(unit)
    }

    /// Opens a stream to a workload of a unit. The error says in words why nobody listens.
    pub(crate) async fn open(&self, unit: &UnitName, target: &WorkloadTarget) -> Result<UnixStream, String> {
        match target {
            WorkloadTarget::Pebble(container) => {
                let door = self.doors.lock().get(unit).and_then(|doors| doors.get(container)).cloned();
                ask(door, PodStream::Pebble, container.as_str()).await
            }
            WorkloadTarget::Port(port) => {
                let doors: Vec<_> =
                    self.doors.lock().get(unit).into_iter().flat_map(BTreeMap::values).cloned().collect();
                let closed = doors.iter().find_map(|door| match door {
                    Door::Closed(reason) => Some(*reason),
                    Door::Pod(_) => None,
                });
                // All at once, so that a pod that answers nothing keeps nobody from the next one; the first by name counts.
                let asked = doors.into_iter().map(|door| ask(Some(door), PodStream::Port(*port), ""));
                let mut answers = std::pin::pin!(futures_util::stream::iter(asked).buffered(MAX_CONTAINERS));
                while let Some(answer) = answers.next().await {
                    if let Ok(stream) = answer {
                        return Ok(stream);
                    }
                }
                Err(match closed {
                    Some(reason) => format!("nobody listens on port {port}: {reason}"),
                    None => format!("nobody listens on port {port}"),
                })
            }
        }
    }
}

async fn ask(door: Option<Door>, target: PodStream, container: &str) -> Result<UnixStream, String> {
    let nobody = || format!("nobody listens for container {container:?}: it has not started yet");
    let (answer, answered) = oneshot::channel();
    let door = match door.ok_or_else(nobody)? {
        Door::Pod(door) => door,
        Door::Closed(reason) => return Err(format!("nobody listens: {reason}")),
    };
    door.try_send(StreamRequest { target, answer }).map_err(|_| nobody())?;
    match timeout(OPENS_WITHIN, answered).await {
        Ok(Ok(answer)) => answer,
        _ => Err(nobody()),
    }
}

#[cfg(test)]
impl PodStreams {
    /// Creates the way to a unit with one pod that a test plays.
    pub(crate) fn played(
        unit: &UnitName,
        mut answer: impl FnMut(PodStream) -> Result<UnixStream, String> + Send + 'static,
    ) -> Self {
        let (door, mut requests) = mpsc::channel::<StreamRequest>(WAITING);
        let of_unit = BTreeMap::from([("web".parse().unwrap(), Door::Pod(door))]);
        tokio::spawn(async move {
            while let Some(request) = requests.recv().await {
                let _ = request.answer.send(answer(request.target));
            }
        });
        let (doors, traffic) = (BTreeMap::from([(unit.clone(), of_unit)]), ModelTraffic::default());
        traffic.begin(unit);
        Self { doors: Arc::new(Mutex::new(doors)), traffic }
    }

    /// Adds the units of another way that a test plays.
    pub(crate) fn beside(self, other: &Self) -> Self {
        let doors = other.doors.lock().clone();
        doors.keys().for_each(|unit| self.traffic.begin(unit));
        self.doors.lock().extend(doors);
        self
    }
}
