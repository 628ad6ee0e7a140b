//! The keeper: one process with the connection and the credentials. It starts a runner for each model, and never
//! waits for one.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use periapt_client::Backoff;
use periapt_host_api::{
    Digest, ErrorCode, ModelUuid, Refusal, Timestamp,
    agent::{AgentAssignments, Register},
    storage::bytes_of,
};
use periapt_program::{Preparation, Programs};
use periapt_sandbox::{CompatibilityHash, Sandbox};
use periapt_uniter::Timeline;
use tokio::{
    sync::{Notify, watch},
    task::{JoinHandle, JoinSet},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::BootTime,
    metrics,
    options::{Options, PodDrivers},
};

mod addresses;
mod calls;
mod charms;
mod compile;
mod controller;
mod directories;
mod disk_space;
mod egress;
mod firewall;
mod follow;
mod held;
mod holding;
mod identity;
mod images;
mod ingress;
mod interfaces;
mod leases;
mod leases_alone;
mod local_units;
mod metrics_listener;
mod model;
mod neighbours;
mod peers;
mod places;
mod pods;
mod probe;
mod process;
mod process_handle;
mod relay;
mod replacement;
mod resources;
mod suspects;
mod temporary;
#[cfg(test)]
mod tests;
mod unconfirmed;
mod workload_logs;
mod workloads;

pub use directories::DirectoryError;
pub use firewall::{FirewallError, TooManyRules, try_firewall};
pub use identity::IdentityError;
pub use leases_alone::LeaseKeeper;
pub use probe::ControllerProbe;
pub use workloads::{end_pods, try_containers};

use charms::Charms;
use compile::CompileHelper;
use controller::{Controller, ControllerError, HttpController};
use directories::Directories;
use egress::{ControllerPlaces, EgressHost, SystemWay};
use firewall::Firewall;
use follow::{Assignments, Follow};
use holding::Holding;
use identity::AgentIdentity;
use ingress::IngressHost;
use metrics_listener::MetricsListener;
use model::{ModelKeeper, Shared};
use peers::{PeerListener, Peers};
use pods::{HostMemory, PodFiles, PodStarter, PodStreams};
use process::Processes;
use replacement::Replacement;
use workload_logs::LogOrders;

/// The time for runners to end when the agent stops. Then the agent ends without them.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// An error of running an agent.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent's directory is unusable.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The agent cannot prove to its controller who it is.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The engine cannot be set up on this host.
    #[error("the engine cannot be set up")]
    Engine(#[from] periapt_sandbox::SandboxError),
    /// The host's boot id or name cannot be read.
    #[error("cannot read {path}")]
    Host {
        /// The path of the file.
        path: &'static str,
        /// The error of the file system.
        #[source]
        source: io::Error,
    },
    /// The address for metrics is not of this machine alone.
    #[error("metrics are served on a loopback address, such as 127.0.0.1:0, and not on {0}")]
    MetricsAddress(SocketAddr),
    /// The address for metrics cannot be listened on.
    #[error("cannot listen on {address} for metrics")]
    Metrics {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// An address for other agents cannot be listened on.
    #[error("cannot listen on {address} for other agents")]
    Peers {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The sockets for other agents cannot be used.
    #[error("the sockets for other agents cannot be used")]
    PeerSockets(#[source] io::Error),
    /// The host cannot make containers, or not confine them.
    #[error("this host cannot run workloads in containers: {0}")]
    Containers(String),
    /// The controller refuses this agent.
    #[error("the controller refuses this agent")]
    Refused(#[source] Refusal),
}

/// The state of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentState {
    /// True if the agent is registered with the controller.
    pub registered: bool,
    /// The models that the agent manages.
    pub models: BTreeSet<ModelUuid>,
}

/// A handle to a running agent's state. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Handle(watch::Receiver<AgentState>);

impl Handle {
    /// Returns the current state.
    pub fn state(&self) -> AgentState {
        self.0.borrow().clone()
    }

    /// Waits for the agent's registration. Returns false if the agent ended before.
    pub async fn registered(&mut self) -> bool {
        self.0.wait_for(|state| state.registered).await.is_ok()
    }
}

/// An agent before its start.
#[derive(Debug)]
pub struct AgentService {
    options: Options,
    identity: AgentIdentity,
    directories: Arc<Directories>,
    register: Register,
    /// The addresses on which the agent listens for units.
    listen_addresses: Vec<IpAddr>,
    engine: CompatibilityHash,
    metrics: Option<MetricsListener>,
    /// The sockets for other agents; none if the agent runs no workloads.
    peers: Option<PeerListener>,
    state: watch::Sender<AgentState>,
}

impl Options {
    /// Opens the agent's directory and reads the facts about its host, without starting anything.
    pub fn build(self) -> Result<AgentService, AgentError> {
        let metrics = self.metrics_address.map(listen_for_metrics).transpose()?;
        let directories = Directories::open(&self.data)?;
        let identity = AgentIdentity::open(self.name.clone(), directories.identity())?;
        let interfaces = interfaces::interfaces().unwrap_or_else(|error| {
            tracing::warn!(%error, "the host's interfaces cannot be listed");
            Vec::new()
        });
        let mut register = Register {
            addresses: match self.addresses.as_slice() {
                [] if interfaces.is_empty() => vec!["127.0.0.1".to_owned()],
                [] => interfaces::preferred(&interfaces),
                given => given.to_vec(),
            },
            interfaces,
            boot_id: host_line("/proc/sys/kernel/random/boot_id")?,
            hostname: host_line("/proc/sys/kernel/hostname")?,
            availability_zone: self.availability_zone.clone(),
            cores: std::thread::available_parallelism()
                .map_or(0, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
            tags: self.tags.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            engine: periapt_sandbox::engine_version().to_owned(),
            storage_limit: self.storage_limit.or_else(|| disk_space::of_storage(&directories)),
            program: self.programs.as_ref().map(Programs::running),
            peer_port: None,
        };
        let listen_addresses =
            interfaces::to_listen_on(&self.listen_addresses, &register.addresses, &register.interfaces);
        let peers = match self.pods {
            PodDrivers { containers: None, workloads: None } => None,
            _ => PeerListener::bind(&listen_addresses, self.peer_port)
                .map_err(|(address, source)| AgentError::Peers { address, source })?,
        };
        register.peer_port = peers.as_ref().map(PeerListener::port);
        // The keeper runs no hooks. It needs the engine's hash, which does not depend on the number of hooks.
        let one = periapt_sandbox::Options { hooks_in_flight: 1, ..periapt_sandbox::Options::default() };
        let engine = Sandbox::new(one)?.compatibility_hash();
        let state = watch::Sender::default();
        Ok(AgentService {
            options: self,
            identity,
            directories: Arc::new(directories),
            register,
            listen_addresses,
            engine,
            metrics,
            peers,
            state,
        })
    }
}

impl AgentService {
    /// Returns a handle to the agent's state.
    pub fn handle(&self) -> Handle {
        Handle(self.state.subscribe())
    }

    /// Returns the address on which `GET /metrics` is answered while the agent runs.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().map(|metrics| metrics.address)
    }

    /// Runs until cancelled, until another program is chosen, or until the controller refuses the agent or does not know
    /// it any more. Then its runners have ended. Abandoned hooks run again with the next agent (U-13). Pods have ended, too,
    /// unless another program takes them over.
    pub async fn run(self, cancel: CancellationToken) -> Result<(), AgentError> {
        let directories = Arc::clone(&self.directories);
        let programs = self.options.programs.clone();
        let firewall = Firewall::new(&self.options, self.register.peer_port, &self.directories)?;
        process::keep_descriptors();
        process::allow_many_descriptors();
        let holding = workloads::holding(&self.options, &self.directories).await;
        let ended = self.serve(firewall.clone(), holding.clone(), cancel).await;
        // The program that tries this one takes them over again, or ends them.
        if programs.is_some_and(|programs| programs.running().trial) {
            holding.holder.leave();
        }
        holding.end().await;
        if let (Some(firewall), Err(AgentError::Identity(IdentityError::Removed(_)))) = (firewall, &ended) {
            firewall.remove(&directories).await;
        }
        ended
    }

    async fn serve(
        self,
        firewall: Option<Arc<Firewall>>,
        holding: Holding,
        cancel: CancellationToken,
    ) -> Result<(), AgentError> {
        process::forbid_core_dumps();
        process::give_large_allocations_back();
        tell_of_gaps();
        let mut beside = JoinSet::new();
        let (earlier, within) = (holding.clone(), self.options.keep_pods);
        beside.spawn(async move {
            sleep(within).await;
            earlier.end_unclaimed().await;
        });
        if let Some(metrics) = self.metrics {
            let address = metrics.address;
            let serve = metrics.serve(cancel.clone());
            beside.spawn(serve.map_err(|source| AgentError::Metrics { address, source })?);
        }
        let images = tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            images = workloads::images(&self.options, &self.directories) => {
                images.map_err(AgentError::Containers)?
            }
        };
        if let Some(images) = images.clone() {
            if !holding.pods.is_empty() {
                images.keep_unused();
            }
            beside.spawn(async move { images.clean_up_once().await });
        }
        let joined = self.identity.join(&self.options.controllers, self.options.join.as_ref());
        let joined = tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            joined = joined => joined?,
        };
        tracing::info!("agent started");
        let refused = Arc::new(Notify::new());
        let kept = self.identity.kept_addresses();
        let (client, name) = (joined.client.clone(), self.options.name.clone());
        let controller = HttpController::new(client, name, kept, Arc::clone(&refused));
        let directories = self.directories;
        let api_addresses: Vec<String> = self.options.controllers.servers().collect();
        let controllers = api_addresses.iter().map(String::as_str);
        let ingress =
            IngressHost::holding(self.listen_addresses, controllers, Arc::clone(&holding.listeners));
        let places = ControllerPlaces::new(api_addresses.clone(), Some(self.identity.kept_addresses()));
        let own_addresses: Vec<IpAddr> =
            self.register.addresses.iter().filter_map(|address| address.parse().ok()).collect();
        let egress =
            EgressHost::new(self.options.egress.clone(), own_addresses.clone(), places, Arc::new(SystemWay));
        let agents = self.identity.agent_tls(&joined)?;
        let peers = match self.peers {
            Some(listener) => {
                ingress.hold(listener.addresses(), "this agent itself");
                let peers = Arc::new(Peers::new(agents.clone()));
                beside.spawn(listener.serve(&peers).map_err(AgentError::PeerSockets)?);
                Some(peers)
            }
            None => None,
        };
        if let Some(firewall) = &firewall {
            beside.spawn(Arc::clone(firewall).run());
        }
        // Earlier versions of the agent kept shared functions in this directory.
        if let Err(error) = temporary::remove(&directories.former_functions()) {
            tracing::warn!(%error, "unused compiled functions could not be deleted");
        }
        let compiler = CompileHelper { program: self.options.program.clone() };
        let charms = Arc::new(Charms::new(
            controller.clone(),
            Arc::clone(&directories),
            Arc::new(compiler),
            self.engine,
            self.options.compiling,
        ));
        pods::forget_earlier(&directories, &holding.pods);
        let program = workloads::pod_program(&self.options);
        let files = Arc::clone(&charms) as Arc<dyn PodFiles>;
        let memory = HostMemory::new(self.options.workload_memory.map(bytes_of));
        let pods = PodStarter::new(program, self.options.pods, files, memory, directories.pods());
        let pods = Arc::new(pods.holding(holding.holder.clone(), Arc::clone(&holding.pods)));
        let shared = Arc::new(Shared {
            agent: self.options.name.clone(),
            controller,
            charms,
            directories,
            api_addresses,
            launch: Arc::new(Processes(self.options.program.clone())),
            pods,
            images,
            ingress,
            firewall,
            own_addresses,
            egress: Arc::new(egress),
            peers,
            hook_capacity: self.options.hooks,
            timeline: Timeline::new(Timestamp::now(), BootTime::now().0),
            idle_after: self.options.idle_after,
        });
        let stop = cancel.child_token();
        let followed = shared.controller.clone();
        let (controller, name) = (shared.controller.clone(), self.options.name.clone());
        let replacement = Replacement::new(controller, name, self.options.programs.clone());
        let (models, ending) = (BTreeMap::new(), JoinSet::new());
        let logs = LogOrders::default();
        let keeper = Keeper { shared, models, ending, state: self.state, replacement, logs };
        let mut keeper = pin!(keeper.run(self.register, stop.clone()));
        tokio::select! {
            ended = &mut keeper => ended,
            error = self.identity.renew(joined, &refused, &followed, &agents) => {
                stop.cancel();
                keeper.await.and(Err(error.into()))
            }
        }
    }
}

/// Listens on a loopback address for metrics.
fn listen_for_metrics(address: SocketAddr) -> Result<MetricsListener, AgentError> {
    match address.ip().is_loopback() {
        true => MetricsListener::bind(address).map_err(|source| AgentError::Metrics { address, source }),
        false => Err(AgentError::MetricsAddress(address)),
    }
}

/// Logs the isolation features that this host lacks for runners and compile helpers.
fn tell_of_gaps() {
    match periapt_helper::gaps() {
        Ok(gaps) => {
            for gap in gaps {
                tracing::warn!(
                    part = gap.part,
                    reason = gap.reason,
                    "charms run without a part of the system's sandbox"
                );
            }
        }
        Err(error) => {
            tracing::warn!(%error, "cannot tell which parts of the system's sandbox this host offers")
        }
    }
}

/// Deletes the resources of a model that has left this agent.
async fn forget_resources(directory: PathBuf) {
    let shown = directory.display().to_string();
    if let Ok(Err(error)) = tokio::task::spawn_blocking(move || temporary::remove(&directory)).await {
        tracing::warn!(%error, directory = shown, "unused resources could not be deleted");
    }
}

/// Reads a kernel file with one line.
fn host_line(path: &'static str) -> Result<String, AgentError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(AgentError::Host { path, source }),
    }
}

/// A model that this agent manages.
struct Managed {
    wanted: watch::Sender<BTreeSet<Digest>>,
    ended: CancellationToken,
    task: JoinHandle<()>,
    streams: PodStreams,
}

struct Keeper<C: Controller> {
    shared: Arc<Shared<C>>,
    models: BTreeMap<ModelUuid, Managed>,
    /// Tasks of former models that are ending.
    ending: JoinSet<()>,
    state: watch::Sender<AgentState>,
    replacement: Replacement<C>,
    logs: LogOrders,
}

impl<C: Controller> Keeper<C> {
    async fn run(mut self, mut register: Register, cancel: CancellationToken) -> Result<(), AgentError> {
        tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            registered = self.register(register.clone()) => registered?,
        }
        let mut assignments = Follow::new(Assignments(self.shared.controller.clone()));
        let mut first = true;
        loop {
            tokio::select! {
                () = cancel.cancelled() => break,
                next = assignments.next() => {
                    if std::mem::take(&mut first) {
                        self.clean_up(&next).await;
                        let held = Arc::clone(self.shared.pods.held());
                        let models: BTreeSet<_> = next.models.keys().copied().collect();
                        self.ending.spawn(async move { held.end_others(&models).await });
                    }
                    let (target, within) = (next.program.clone(), next.program_within);
                    let orders = next.logs.clone();
                    self.assign(next);
                    let models = &self.models;
                    self.logs.follow(&self.shared.controller, orders, |order| {
                        models.get(&order.model).map(|managed| managed.streams.clone())
                    });
                    self.replacement.look(target.as_ref(), Duration::from_secs(within.into()));
                }
                prepared = self.replacement.prepared() => match prepared {
                    // It is tried once this agent has ended in order, and takes the pods over.
                    Preparation::Chosen => {
                        self.leave_pods();
                        break;
                    }
                    Preparation::Refused => {
                        register.program = self.replacement.running();
                        tokio::select! {
                            () = cancel.cancelled() => break,
                            registered = self.register(register.clone()) => registered?,
                        }
                    }
                },
                Some(_) = self.ending.join_next() => {}
            }
        }
        if self.replacement.running().is_some_and(|program| program.trial) {
            self.leave_pods();
        }
        self.stop().await;
        Ok(())
    }

    /// Leaves all pods and their images to the next keeper.
    fn leave_pods(&self) {
        self.shared.pods.leave();
        if let Some(images) = &self.shared.images {
            images.keep_unused();
        }
    }

    /// Registers, and retries while the controller is away.
    async fn register(&self, register: Register) -> Result<(), AgentError> {
        let mut backoff = Backoff::network();
        loop {
            match self.shared.controller.register(register.clone()).await {
                Ok(()) => break,
                Err(ControllerError::Refused(refusal)) if refusal.code != ErrorCode::Internal => {
                    return Err(AgentError::Refused(refusal));
                }
                Err(error) => {
                    let wait = backoff.failed();
                    metrics::metrics().retries.inc(&["stream"]);
                    tracing::info!(%error, ?wait, "not registered yet");
                    sleep(wait).await;
                }
            }
        }
        self.state.send_modify(|state| state.registered = true);
        Ok(())
    }

    async fn clean_up(&self, assignments: &AgentAssignments) {
        let wanted = assignments.models.values().flat_map(|model| model.charms.iter().copied()).collect();
        if let Err(error) = self.shared.charms.keep_only(wanted).await {
            tracing::warn!(%error, "unused charms could not be deleted");
        }
        let models = assignments.models.keys().copied().collect();
        for directory in self.shared.directories.other_resources(&models) {
            forget_resources(directory).await;
        }
    }

    /// Starts the keepers of new models, and ends those of models that are not assigned any more.
    fn assign(&mut self, assignments: AgentAssignments) {
        let gone: Vec<_> =
            self.models.keys().filter(|model| !assignments.models.contains_key(model)).copied().collect();
        for model in gone {
            if let Some(managed) = self.models.remove(&model) {
                managed.ended.cancel();
                let resources = self.shared.directories.resources(&model);
                self.ending.spawn(async move {
                    // An error means that the task panicked, so it has ended, too.
                    let _ = managed.task.await;
                    // A model that has come back meanwhile fetches its resources again.
                    forget_resources(resources).await;
                });
            }
        }
        let wanted = assignments.models.values().flat_map(|model| model.charms.iter().copied()).collect();
        self.shared.charms.forget_others(&wanted);
        for (model, assignment) in assignments.models {
            let charms: BTreeSet<_> = assignment.charms.into_iter().collect();
            for charm in &charms {
                self.fetch_ahead(*charm);
            }
            match self.models.get(&model) {
                Some(managed) => managed.wanted.send_if_modified(|wanted| {
                    let differs = *wanted != charms;
                    *wanted = charms;
                    differs
                }),
                None => self.models.insert(model, self.manage(model, charms)).is_some(),
            };
        }
        let models = self.models.keys().copied().collect();
        if let Some(firewall) = &self.shared.firewall {
            firewall.assign(&models);
        }
        self.state.send_modify(|state| state.models = models);
    }

    /// Starts the keeper of a model. A model that comes back gets a new keeper at once, even if its last one has
    /// not ended: attaching revokes the old runner.
    fn manage(&self, model: ModelUuid, charms: BTreeSet<Digest>) -> Managed {
        let (wanted, ended) = (watch::Sender::new(charms), CancellationToken::new());
        let keeper = ModelKeeper::new(Arc::clone(&self.shared), model, wanted.subscribe(), ended.clone());
        let streams = keeper.streams();
        Managed { wanted, ended, task: tokio::spawn(keeper.run()), streams }
    }

    /// Fetches and compiles a charm before a unit requests it.
    fn fetch_ahead(&self, charm: Digest) {
        let charms = Arc::clone(&self.shared.charms);
        tokio::spawn(async move {
            if let Err(error) = charms.put_in_place(charm).await {
                tracing::debug!(charm = %charm.short(), %error, "a charm could not be fetched ahead");
            }
        });
    }

    async fn stop(mut self) {
        for managed in self.models.into_values() {
            managed.ended.cancel();
            self.ending.spawn(async move {
                let _ = managed.task.await;
            });
        }
        let all = async { while self.ending.join_next().await.is_some() {} };
        if tokio::time::timeout(STOPS_WITHIN, all).await.is_err() {
            tracing::warn!("runners did not end in time, and are killed");
        }
    }
}
