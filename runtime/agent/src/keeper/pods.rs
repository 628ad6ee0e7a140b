//! The pods of one model on this host: a process for each container that a unit's charm declares. The keeper starts a pod
//! when the unit appears, starts it again when it ends by itself, and ends it with the unit.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt as _;
use parking_lot::Mutex;
use periapt_hook::WorkloadTarget;
use periapt_host_api::{
    ApplicationName, ContainerName, UnitName,
    charm::MAX_CONTAINERS,
    pod::{DialOrder, PodStream},
    view::FrameLine,
};
use periapt_uniter::WorkloadBoots;
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::protocol::WorkloadsTold;

mod life;
mod process;
mod wanted;

pub(crate) use process::PodProgram;
use wanted::WantedPods;

/// A pod: the container of a unit.
pub(crate) type PodId = (UnitName, ContainerName);

/// The boot ids of the pods that listen.
#[derive(Debug, Default)]
pub(crate) struct PodBoots {
    /// The number of times that a pod began to listen.
    version: u64,
    boots: BTreeMap<PodId, String>,
}

impl PodBoots {
    fn listens(&mut self, pod: &PodId, boot_id: String) {
        self.version += 1;
        self.boots.insert(pod.clone(), boot_id);
    }

    fn ended(&mut self, pod: &PodId) -> bool {
        self.boots.remove(pod).is_some()
    }

    /// Returns them as runners are told.
    pub(crate) fn told(&self) -> WorkloadsTold {
        let mut boots: BTreeMap<UnitName, WorkloadBoots> = BTreeMap::new();
        for ((unit, container), boot_id) in &self.boots {
            boots.entry(unit.clone()).or_default().insert(container.clone(), boot_id.clone());
        }
        WorkloadsTold { version: self.version, boots }
    }

    /// Returns the number of times that a pod began to listen.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }
}

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

/// The ways to the pods of each unit.
type Doors = Arc<Mutex<BTreeMap<UnitName, BTreeMap<ContainerName, mpsc::Sender<StreamRequest>>>>>;

/// The way to the pods of a model.
#[derive(Debug, Clone)]
pub(crate) struct PodStreams {
    doors: Doors,
    /// False if the agent runs no workloads.
    runs_workloads: bool,
}

/// The pods of one model. Dropping it kills them; [`Self::end`] ends them in order.
#[derive(Debug)]
pub(crate) struct Pods {
    program: Option<Arc<PodProgram>>,
    wanted: WantedPods,
    running: BTreeMap<PodId, CancellationToken>,
    doors: Doors,
    boots: Arc<watch::Sender<PodBoots>>,
    dials: mpsc::Sender<PodDial>,
    tasks: JoinSet<()>,
}

impl Pods {
    /// Creates the pods of a model; without a program none ever runs. Calls of their workloads go to `dials`, or are refused
    /// if it is full.
    pub(crate) fn new(program: Option<Arc<PodProgram>>, dials: mpsc::Sender<PodDial>) -> Self {
        Self {
            program,
            wanted: WantedPods::default(),
            running: BTreeMap::new(),
            doors: Doors::default(),
            boots: Arc::default(),
            dials,
            tasks: JoinSet::new(),
        }
    }

    /// Returns the way to the pods.
    pub(crate) fn streams(&self) -> PodStreams {
        PodStreams { doors: Arc::clone(&self.doors), runs_workloads: self.program.is_some() }
    }

    /// Returns the boot ids of the pods, and their changes.
    pub(crate) fn boots(&self) -> watch::Receiver<PodBoots> {
        self.boots.subscribe()
    }

    /// Records the changes of a frame's line, and starts and ends pods after the frame's last one. Returns the units with
    /// pods if the frame may have changed them.
    pub(crate) fn observe(&mut self, line: &FrameLine) -> Option<BTreeSet<UnitName>> {
        let program = self.program.clone()?;
        if !self.wanted.observe(line) {
            return None;
        }
        while self.tasks.try_join_next().is_some() {}
        let wanted = self.wanted.pods();
        let units = wanted.iter().map(|(unit, _)| unit.clone()).collect();
        self.running.retain(|pod, ends| {
            let stays = wanted.contains(pod);
            if !stays {
                ends.cancel();
            }
            stays
        });
        let new: BTreeSet<PodId> = wanted.into_iter().filter(|pod| !self.running.contains_key(pod)).collect();
        for pod in new {
            let ends = CancellationToken::new();
            let (door, requests) = mpsc::channel(WAITING);
            self.doors.lock().entry(pod.0.clone()).or_default().insert(pod.1.clone(), door);
            self.running.insert(pod.clone(), ends.clone());
            let (program, doors, boots) =
                (Arc::clone(&program), Arc::clone(&self.doors), Arc::clone(&self.boots));
            let dials = self.dials.clone();
            self.tasks.spawn(async move {
                life::keep(&program, &pod, requests, &boots, &dials, &ends).await;
                // A pod of the same name may have begun since: what is known of it stays.
                let mut doors = doors.lock();
                if let Some(of_unit) = doors.get_mut(&pod.0)
                    && of_unit.get(&pod.1).is_some_and(mpsc::Sender::is_closed)
                {
                    of_unit.remove(&pod.1);
                    if of_unit.is_empty() {
                        doors.remove(&pod.0);
                    }
                    boots.send_if_modified(|boots| boots.ended(&pod));
                }
            });
        }
        Some(units)
    }

    /// Ends all pods in order.
    pub(crate) async fn end(&mut self) {
        for ends in std::mem::take(&mut self.running).into_values() {
            ends.cancel();
        }
        while self.tasks.join_next().await.is_some() {}
    }
}

impl PodStreams {
    /// Returns the units of an application that have pods.
    pub(crate) fn units_of(&self, application: &ApplicationName) -> Vec<UnitName> {
        let [first, last] = [0, u32::MAX].map(|number| UnitName::new(application.clone(), number));
        self.doors.lock().range(first..=last).map(|(unit, _)| unit.clone()).collect()
    }

    /// Opens a stream to a workload of a unit. The error says in words why nobody listens.
    pub(crate) async fn open(&self, unit: &UnitName, target: &WorkloadTarget) -> Result<UnixStream, String> {
        if !self.runs_workloads {
            return Err("nobody listens: this agent runs no workloads".to_owned());
        }
        match target {
            WorkloadTarget::Pebble(container) => {
                let door = self.doors.lock().get(unit).and_then(|doors| doors.get(container)).cloned();
                ask(door, PodStream::Pebble, container.as_str()).await
            }
            WorkloadTarget::Port(port) => {
                let doors: Vec<_> =
                    self.doors.lock().get(unit).into_iter().flat_map(BTreeMap::values).cloned().collect();
                // All at once, so that a pod that answers nothing keeps nobody from the next one; the first by name counts.
                let asked = doors.into_iter().map(|door| ask(Some(door), PodStream::Port(*port), ""));
                let mut answers = std::pin::pin!(futures_util::stream::iter(asked).buffered(MAX_CONTAINERS));
                while let Some(answer) = answers.next().await {
                    if let Ok(stream) = answer {
                        return Ok(stream);
                    }
                }
                Err(format!("nobody listens on port {port}"))
            }
        }
    }
}

async fn ask(
    door: Option<mpsc::Sender<StreamRequest>>,
    target: PodStream,
    container: &str,
) -> Result<UnixStream, String> {
    let nobody = || format!("nobody listens for container {container:?}: it has not started yet");
    let (answer, answered) = oneshot::channel();
    let door = door.ok_or_else(nobody)?;
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
        let of_unit = BTreeMap::from([("web".parse().unwrap(), door)]);
        tokio::spawn(async move {
            while let Some(request) = requests.recv().await {
                let _ = request.answer.send(answer(request.target));
            }
        });
        let doors = BTreeMap::from([(unit.clone(), of_unit)]);
        Self { doors: Arc::new(Mutex::new(doors)), runs_workloads: true }
    }
}
