//! The options of an agent.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    net::{IpAddr, SocketAddr},
    num::NonZeroUsize,
    path::PathBuf,
    time::Duration,
};

use periapt_client::Addresses;
use periapt_host_api::{
    AgentName, TagName, agent::JoinText, egress::EgressReach, network::Subnet, ports::PortRange,
};
use periapt_program::Programs;

use crate::host;

/// The options of an agent. It reads nothing else from the environment.
#[derive(Debug, Clone)]
pub struct Options {
    /// The controllers' URLs, such as `https://node-1.example:17070`. All controllers are of one store.
    pub controllers: Addresses,
    /// The agent's name, unique in its controller.
    pub name: AgentName,
    /// The join token, for an agent that has not joined yet.
    pub join: Option<JoinText>,
    /// The agent's own directory (see `Directories`), created if missing. Only one agent at a time may use it.
    pub data: PathBuf,
    /// The addresses of this host for other machines, the preferred first; none means those of its interfaces.
    pub addresses: Vec<String>,
    /// The addresses of this host on which the agent listens for the open ports of its units; none means those of
    /// `addresses`.
    pub listen_addresses: Vec<IpAddr>,
    /// The port on which the agent takes connections of other agents, if it runs workloads; 0 means any that is free, and none
    /// means 17072, or any other one if that is taken.
    pub peer_port: Option<u16>,
    /// The rules of the host's firewall that the agent keeps; none: it touches no firewall.
    pub firewall: Option<FirewallOptions>,
    /// The availability zone of the host; may be empty.
    pub availability_zone: String,
    /// The tags that `constraints` match to place units on the agent.
    pub tags: BTreeSet<TagName>,
    /// The program of the agent's other processes.
    pub program: ChildProgram,
    /// The drivers of pods.
    pub pods: PodDrivers,
    /// The time for which pods go on without an agent, once this one was killed. Then they end by themselves.
    pub keep_pods: Duration,
    /// The hosts outside that workloads may connect to, if they are granted.
    pub egress: EgressOptions,
    /// The limits on concurrent hooks of one model on this agent.
    pub hooks: HookCapacity,
    /// The time without due work after which a runner ends. It starts again when work is due.
    pub idle_after: Duration,
    /// The limits on compiling a component.
    pub compiling: CompileLimits,
    /// The limit of all storage on the agent's disk together, in mebibytes; none means the disk's free space.
    pub storage_limit: Option<u64>,
    /// The limit of the memory of all workloads together, in mebibytes; none for any.
    pub workload_memory: Option<u64>,
    /// The loopback address on which `GET /metrics` is answered; none: nothing listens.
    pub metrics_address: Option<SocketAddr>,
    /// The programs by which the agent replaces itself; none: it keeps its own.
    pub programs: Option<Programs>,
}

/// The limits on concurrent hooks of one model. A waiting hook keeps its memory and therefore its permit, so memory is
/// the limit. Computing hooks share the cores by turns, whatever their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookCapacity {
    /// The most instances, regardless of memory.
    pub hooks: NonZeroUsize,
    /// The most memory of all budgets together, in bytes. A hook with a larger budget runs alone.
    pub memory: u64,
}

impl Default for HookCapacity {
    /// Returns limits for four hooks of the usual budget, on any host.
    fn default() -> Self {
        Self { hooks: MAX_INSTANCES, memory: LEAST_MEMORY }
    }
}

/// The pool's size. Such a pool reserves some hundred GiB of the 128 TiB of addresses, and more concurrent hooks would
/// only slow each other down.
const MAX_INSTANCES: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// The least memory: four hooks of the usual budget. Most hooks use a hundredth of it, and on a small machine slow
/// hooks must not hold up all others.
const LEAST_MEMORY: u64 = 1 << 30;

impl HookCapacity {
    /// Returns limits for this host: three quarters of this process's memory. The rest is for everything except hooks.
    pub fn of_this_host() -> Self {
        Self { memory: (host::memory() / 4 * 3).max(LEAST_MEMORY), ..Self::default() }
    }
}

/// The rules of the host's firewall that an agent keeps: the kernel drops packets to open ports of units unless the
/// model's rules admit the sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FirewallOptions {
    /// The ports that no rule is about, even if units open them: those of the host's own services.
    pub untouched: BTreeSet<PortRange>,
}

/// The drivers of an agent's pods, by what runs in them. An agent runs nothing that it has no driver for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PodDrivers {
    /// The driver of containers.
    pub containers: Option<ContainerDriver>,
    /// The driver of WebAssembly workloads.
    pub workloads: Option<WorkloadDriver>,
}

/// The last word on connections of workloads to hosts outside of their models.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressOptions {
    /// The extent to which grants count.
    pub reach: EgressReach,
    /// The subnets that no workload reaches, whatever is granted.
    pub denied: Vec<Subnet>,
}

/// The drivers of containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerDriver {
    /// Processes of the agent's own user, without isolation, for tests.
    Plain,
    /// Containers of namespaces, on the images of the charm's resources.
    Namespaces(HostGaps),
}

/// The treatment of a host that cannot make containers, or not confine them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostGaps {
    /// It is told, and the agent runs.
    Told,
    /// The agent does not start.
    Refused,
}

/// The drivers of WebAssembly workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadDriver {
    /// Components in the engine's sandbox, each in a process of its own behind the system's fence.
    Wasm,
}

/// The program for runners, compile helpers and pods. With the first two arguments it calls [`crate::run_runner`] or
/// [`crate::run_compile_helper`].
#[derive(Debug, Clone)]
pub struct ChildProgram {
    /// The executable.
    pub path: PathBuf,
    /// The arguments for a runner.
    pub runner: Vec<OsString>,
    /// The arguments for a compile helper.
    pub compile_helper: Vec<OsString>,
    /// The arguments for a pod of this agent, before those of its driver.
    pub pod: Vec<OsString>,
    /// The arguments for the process that holds pods while no agent runs: it calls [`crate::run_holder`].
    pub holder: Vec<OsString>,
    /// The arguments for the process that unpacks images: it calls [`crate::run_unpack_helper`].
    pub unpack_helper: Vec<OsString>,
    /// The arguments for the process that counts the files of containers' users: it calls [`crate::run_count_helper`].
    pub count_helper: Vec<OsString>,
    /// The whole environment of all. They see no other variables of the agent.
    pub environment: Vec<(OsString, OsString)>,
}

/// The limits on compiling one charm's component, which may be hostile. Shared modules are compiled separately; the
/// limits of time and output apply to all parts together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompileLimits {
    /// The private memory for compiling one part, in bytes.
    pub memory: u64,
    /// The CPU time for compiling one part over all threads, in seconds.
    pub cpu_seconds: u64,
    /// The wall time for all parts together.
    pub deadline: Duration,
    /// The most bytes of a component.
    pub component: u64,
    /// The most bytes of all compiled parts together.
    pub output: u64,
}

impl Default for CompileLimits {
    /// Returns the default limits. A Python interpreter, the largest known component (40 MB), takes 9 s on two loaded
    /// cores, and compiles to three times its size. The limits have room for a component three times as large.
    fn default() -> Self {
        Self {
            memory: 4 << 30,
            cpu_seconds: 300,
            deadline: Duration::from_secs(300),
            component: 128 << 20,
            output: 512 << 20,
        }
    }
}

impl Options {
    /// Creates the default options.
    pub fn new(controllers: Addresses, name: AgentName, data: PathBuf, program: ChildProgram) -> Self {
        Self {
            controllers,
            name,
            join: None,
            data,
            addresses: Vec::new(),
            listen_addresses: Vec::new(),
            peer_port: None,
            firewall: None,
            availability_zone: String::new(),
            tags: BTreeSet::new(),
            program,
            pods: PodDrivers::default(),
            keep_pods: Duration::from_secs(300),
            egress: EgressOptions::default(),
            hooks: HookCapacity::of_this_host(),
            idle_after: Duration::from_secs(60),
            compiling: CompileLimits::default(),
            storage_limit: None,
            workload_memory: None,
            metrics_address: None,
            programs: None,
        }
    }
}
