//! The agent as a service: it opens the agent's directory, identity and sockets, and runs the keeper beside its
//! listeners and the renewal of its certificate.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
};

use periapt_host_api::{Timestamp, agent::Register, storage::bytes_of};
use periapt_program::Programs;
use periapt_sandbox::{CompatibilityHash, Sandbox};
use periapt_uniter::Timeline;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{
    AgentState, Keeper,
    charms::Charms,
    compile::CompileHelper,
    controller::HttpController,
    directories::Directories,
    disk_space,
    egress::{ControllerPlaces, EgressHost, SystemWay},
    error::AgentError,
    exec_sessions::ExecSessions,
    firewall::Firewall,
    holding::Holding,
    identity::{AgentIdentity, IdentityError},
    ingress::IngressHost,
    interfaces,
    metrics_listener::MetricsListener,
    model::Shared,
    peers::{PeerListener, Peers},
    pods::{self, HostMemory, PodFiles, PodStarter},
    process::{self, Processes},
    registration::AgentRegistration,
    replacement::Replacement,
    temporary,
    workload_logs::LogOrders,
    workloads::{self, TriedContainers},
};
use crate::{
    clock::BootTime,
    options::{Options, PodDrivers},
};

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
            firewall_problem: None,
            container_problem: None,
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
        periapt_helper::give_large_allocations_back(process::MAPPED_ALONE);
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
        let containers = tokio::select! {
            () = cancel.cancelled() => return Ok(()),
            containers = workloads::containers(&self.options, &self.directories) => {
                containers.map_err(AgentError::Containers)?
            }
        };
        let (images, container_problem) = match containers {
            Some(TriedContainers { images, problem }) => (Some(images), problem),
            None => (None, None),
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
        let pods = PodStarter::new(
            program,
            self.options.pods,
            files,
            memory,
            (directories.pods(), directories.pod_locks()),
        );
        let pods = pods
            .holding(holding.holder.clone(), Arc::clone(&holding.pods))
            .counting(workloads::storage_counter(&self.options));
        let pods = Arc::new(pods);
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
        let problem = shared.firewall.as_ref().map(|firewall| firewall.problem());
        let register = Register { container_problem, ..self.register };
        let registration = AgentRegistration::new(shared.controller.clone(), register, problem);
        let stop = cancel.child_token();
        let followed = shared.controller.clone();
        let (controller, name) = (shared.controller.clone(), self.options.name.clone());
        let replacement = Replacement::new(controller, name, self.options.programs.clone());
        let (models, ending) = (BTreeMap::new(), JoinSet::new());
        let (logs, sessions) = (LogOrders::default(), ExecSessions::default());
        let keeper = Keeper { shared, models, ending, state: self.state, replacement, logs, sessions };
        let mut keeper = pin!(keeper.run(registration, stop.clone()));
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

/// Reads a kernel file with one line.
fn host_line(path: &'static str) -> Result<String, AgentError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(source) => Err(AgentError::Host { path, source }),
    }
}
