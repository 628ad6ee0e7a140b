//! The keeper of one model. It starts the model's runner when work is due, watches it, and restarts it.

use std::{net::IpAddr, sync::Arc, time::Duration};

use periapt_host_api::{
    AgentName, Incarnation, ModelUuid, Timestamp,
    agent::RunnerCommand,
    trace::{MAX_FRAME_TRACES, RevisionTrace},
    view::FrameLine,
};
use periapt_uniter::{Timeline, WorkloadsKnown};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    calls::WantedCharms,
    charms::Charms,
    controller::{Controller, ControllerError},
    directories::Directories,
    egress::EgressHost,
    firewall::{Firewall, WantedPorts},
    follow::{Follow, Watch},
    images::Images,
    ingress::{Ingress, IngressHost},
    leases::Leases,
    local_units::LocalUnits,
    neighbours::{self, CallingAgent, Neighbours},
    peers::{AskWays, PeerWays, Peers},
    pods::{self, ImageArchives, PodDial, PodImages, PodStarter, PodStreams, Pods},
    process::Launch,
    resources::Resources,
    suspects::Suspects,
    unconfirmed::UnconfirmedEffects,
};
use crate::{
    clock::{self, BootClock},
    metrics::{RunnerState, metrics},
    options::HookCapacity,
    protocol::Start,
};
use periapt_client::Backoff;

mod life;

/// A runner that lived this long has started successfully.
const LIVED: Duration = Duration::from_secs(30);

/// The longest sleep before the next check of the clock: sleeps stop while the host is suspended.
const CLOCK_CHECK: Duration = Duration::from_secs(30);

/// The state that all models of an agent share.
pub(crate) struct Shared<C> {
    pub(crate) agent: AgentName,
    pub(crate) controller: C,
    pub(crate) charms: Arc<Charms<C>>,
    pub(crate) directories: Arc<Directories>,
    /// The controller's addresses, for hooks.
    pub(crate) api_addresses: Vec<String>,
    pub(crate) launch: Arc<dyn Launch>,
    pub(crate) pods: Arc<PodStarter>,
    /// The images of containers; none: they run on the host's files.
    pub(crate) images: Option<Arc<Images>>,
    /// The addresses and bounds of listeners for units.
    pub(crate) ingress: Arc<IngressHost>,
    /// The agent's part of the host's firewall, if it has one.
    pub(crate) firewall: Option<Arc<Firewall>>,
    /// The addresses by which units on this host are told of each other.
    pub(crate) own_addresses: Vec<IpAddr>,
    /// The connections of workloads to hosts outside.
    pub(crate) egress: Arc<EgressHost>,
    /// The connections to other agents; none if this one runs no workloads.
    pub(crate) peers: Option<Arc<Peers>>,
    pub(crate) hook_capacity: HookCapacity,
    pub(crate) timeline: Timeline,
    pub(crate) idle_after: Duration,
}

/// The end of a runner.
#[derive(Debug)]
enum Ending {
    /// The keeper stops managing the model.
    Ordered,
    /// No work was due.
    Idle { wake_at: Option<Timestamp> },
    /// The runner ended on purpose.
    Left { reason: String },
    /// The runner died, or violated the protocol.
    Died { how: String },
}

/// The keeper of one model.
pub(crate) struct ModelKeeper<C: Controller> {
    shared: Arc<Shared<C>>,
    model: ModelUuid,
    wanted: WantedCharms,
    ended: CancellationToken,
    leases: Leases,
    suspects: Suspects,
    unconfirmed: UnconfirmedEffects,
    resources: Arc<Resources<C>>,
    pods: Pods,
    neighbours: Arc<Neighbours>,
    /// The calls of workloads, until something takes them.
    dials: Option<mpsc::Receiver<PodDial>>,
    ingress: Ingress,
    ports: WantedPorts,
    /// The extent to which the last runner knows the workloads.
    workloads_told: WorkloadsKnown,
    incarnation: watch::Sender<Option<Incarnation>>,
    watch: Follow<Watch<C>>,
    /// The traced commands that woke the model since its last runner ended.
    woken_by: Vec<RevisionTrace>,
}

impl<C: Controller> ModelKeeper<C> {
    /// Creates the keeper of a model, which runs until `ended`.
    pub(crate) fn new(
        shared: Arc<Shared<C>>,
        model: ModelUuid,
        wanted: WantedCharms,
        ended: CancellationToken,
    ) -> Self {
        let watch = Follow::new(Watch::new(shared.controller.clone(), model));
        let resources = Resources::new(shared.controller.clone(), model, Arc::clone(&shared.directories));
        let (dials, dialled) = mpsc::channel(neighbours::WAITING);
        let resources = Arc::new(resources);
        let images = shared.images.clone().map(|images| {
            let archives: Arc<dyn ImageArchives> = Arc::clone(&resources) as _;
            PodImages { images, archives }
        });
        let pods =
            Pods::new((model, Arc::clone(&shared.pods)), images, shared.directories.storage(&model), dials);
        let agent = CallingAgent {
            name: shared.agent.clone(),
            addresses: shared.own_addresses.clone(),
            peers: shared.peers.clone(),
            egress: Some(Arc::clone(&shared.egress)),
        };
        let asked: Arc<dyn AskWays> = Arc::new(shared.controller.clone());
        let neighbours = Neighbours::new(model, agent, pods.streams(), PeerWays::new(model, asked));
        let ingress = Ingress::new(Arc::clone(&shared.ingress), model, pods.streams(), pods.states());
        Self {
            shared,
            model,
            wanted,
            ended,
            leases: Leases::new(BootClock::default()),
            suspects: Suspects::default(),
            unconfirmed: UnconfirmedEffects::default(),
            resources,
            pods,
            neighbours: Arc::new(neighbours),
            dials: Some(dialled),
            ingress,
            ports: WantedPorts::default(),
            workloads_told: WorkloadsKnown::default(),
            incarnation: watch::Sender::default(),
            watch,
            woken_by: Vec::new(),
        }
    }

    /// Returns the way to the pods of the model's units.
    pub(crate) fn streams(&self) -> PodStreams {
        self.pods.streams()
    }

    /// Manages the model until `ended`. Then its runner has ended.
    pub(crate) async fn run(mut self) {
        let mut beside = JoinSet::new();
        beside.spawn(self.leases.clone().run(self.shared.controller.clone(), self.model));
        let (incarnation, reasons) = (self.incarnation.subscribe(), self.pods.reasons());
        beside.spawn(pods::tell(self.shared.controller.clone(), self.model, incarnation, reasons));
        let (incarnation, states) = (self.incarnation.subscribe(), self.pods.states());
        beside.spawn(pods::report(self.shared.controller.clone(), self.model, incarnation, states));
        if let Some(dials) = self.dials.take() {
            beside.spawn(Arc::clone(&self.neighbours).run(dials));
        }
        let mut state = RunnerState::default();
        let mut restarts = Backoff::new(Duration::from_millis(100), Duration::from_secs(30));
        loop {
            let born = Instant::now();
            state.running();
            let ending = self.live().await;
            tracing::debug!(model = %self.model, ?ending, "a runner ended");
            if born.elapsed() >= LIVED {
                restarts.succeeded();
            }
            match ending {
                Ending::Ordered => break,
                Ending::Idle { wake_at } => {
                    restarts.succeeded();
                    state.resting();
                    self.rest(wake_at).await;
                }
                Ending::Left { reason } => {
                    tracing::warn!(model = %self.model, reason, "a runner left");
                    self.suspects.released();
                    state.restarting();
                    self.pause(restarts.failed()).await;
                }
                Ending::Died { how } => {
                    state.restarting();
                    self.handle_runner_death(&how).await;
                    self.pause(restarts.failed()).await;
                }
            }
            if self.ended.is_cancelled() {
                break;
            }
        }
        self.ingress.close();
        self.pods.end().await;
    }

    /// Returns the first message for the next runner.
    fn start(&mut self) -> Start {
        let workloads = self.pods.listening().borrow().told();
        self.workloads_told = WorkloadsKnown { pods: workloads.version, notices: 0 };
        Start {
            workloads,
            agent: self.shared.agent.clone(),
            model: self.model,
            storage: self.shared.directories.storage(&self.model),
            api_addresses: self.shared.api_addresses.clone(),
            hooks: self.shared.hook_capacity.hooks.get(),
            hook_memory_mib: u32::try_from(self.shared.hook_capacity.memory >> 20).unwrap_or(u32::MAX),
            timeline: self.shared.timeline,
            idle_after_ms: u64::try_from(self.shared.idle_after.as_millis()).unwrap_or(u64::MAX),
            suspects: self.suspects.list(),
            grants: self.leases.grants().borrow().values().cloned().collect(),
            woken_by: std::mem::take(&mut self.woken_by),
        }
    }

    fn observe(&mut self, line: &FrameLine) {
        self.leases.observe(line);
        self.resources.observe(line);
        let changed = self.pods.observe(line);
        self.ingress.have_pods(changed);
        self.ingress.observe(line);
        if let Some(firewall) = &self.shared.firewall
            && let Some(machines) = self.ports.observe(line)
        {
            firewall.observe(self.model, machines);
        }
        self.neighbours.observe(line);
    }

    /// Waits until work is due.
    async fn rest(&mut self, wake_at: Option<Timestamp>) {
        let mut pods = self.pods.listening();
        loop {
            if !pods.borrow_and_update().are_all_known(self.workloads_told) {
                return;
            }
            let wait =
                wake_at.map_or(CLOCK_CHECK, |at| clock::until(self.shared.timeline, at).min(CLOCK_CHECK));
            if wait.is_zero() {
                return;
            }
            tokio::select! {
                () = self.ended.cancelled() => return,
                () = sleep(wait) => {}
                Ok(()) = pods.changed() => {}
                line = self.watch.next() => {
                    self.observe(&line);
                    if !line.is_heartbeat() {
                        self.woken_by = line.traces;
                        self.woken_by.truncate(MAX_FRAME_TRACES);
                        return;
                    }
                }
            }
        }
    }

    async fn pause(&mut self, wait: Duration) {
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = sleep(wait) => {}
        }
    }

    /// Handles the death of a runner: its hooks become suspects, and the keeper sends its remaining early
    /// effects.
    async fn handle_runner_death(&mut self, how: &str) {
        let in_flight = self.suspects.in_flight();
        tracing::warn!(model = %self.model, how, in_flight, "a runner died");
        metrics().runner_deaths.inc(&[]);
        metrics().suspects.add(&[], u64::try_from(in_flight).unwrap_or(u64::MAX));
        self.suspects.died();
        self.suspects.retain(&self.leases.local_units(LocalUnits::units));
        let Some(incarnation) = *self.incarnation.borrow() else { return };
        let mut backoff = Backoff::network();
        // One call for each unit: together they may exceed the limit of a call, and few units have any.
        while let Some((unit, items)) = self.unconfirmed.take() {
            let command = vec![RunnerCommand::Early { unit, incarnation, items }];
            while !self.ended.is_cancelled() {
                match self.shared.controller.commands(self.model, command.clone().into()).await {
                    // Another attempt would be refused, too, and no runner waits for the answer.
                    Ok(_) | Err(ControllerError::Refused(_)) => break,
                    Err(ControllerError::Away(_) | ControllerError::Unusable(_)) => {
                        self.pause(backoff.failed()).await;
                    }
                }
            }
        }
    }
}
