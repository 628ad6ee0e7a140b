//! `agent pod`: the processes of a pod, with or without a container.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use clap::Args;
use periapt_helper::{
    DirectoryAccess, Fence, MissingFence, PodPlaces, PodSockets, Program, Resident, WorkloadDirectory,
    WorkloadLimits, forbid_core_dumps, give_back_what_is_freed,
};
use periapt_host_api::storage::parse_bytes;
use periapt_pod::{
    ContainerError, ContainerLimits, ContainerOptions, ContainerProgram, ContainerUser, DriverKind,
    MountAccess, MountedDirectory, PodError, PodOptions, WasmListen, WasmOptions, WasmWorkload,
};

use crate::{
    commands::Fenced,
    error::{Explain as _, Failure, Result, with_source},
    input,
    logging::environment_of_processes,
    output, program,
    service::{announce, cancelled_by_signal},
};

/// The name of the driver that makes a container.
const NAMESPACES: &str = "namespaces";

/// The name of the driver of WebAssembly workloads.
const WASM: &str = "wasm";

/// The thousandths of a processor in Juju's unit of processor time.
const THOUSANDTHS: u32 = 10;

/// Run the processes of a pod behind Pebble's API: started by an agent, and by tests
#[derive(Debug, Args)]
pub(crate) struct Pod {
    /// The path of the API's socket
    #[arg(long, value_name = "PATH", required_unless_present = "keeper")]
    socket: Option<PathBuf>,
    /// Standard input is the socket of the agent that starts the pod
    #[arg(long)]
    keeper: bool,
    /// An address for what the API shows to all: GET /v1/health
    #[arg(long, value_name = "ADDRESS:PORT", requires = "socket")]
    http: Option<SocketAddr>,
    /// The driver that runs processes: namespaces, which makes a container; wasm, for WebAssembly workloads; or plain, which is
    /// for tests
    #[arg(long, value_name = "DRIVER")]
    driver: String,
    /// Accept a driver that isolates nothing: its processes can do all that this user can
    #[arg(long)]
    i_know_that_nothing_is_isolated: bool,
    /// A workload of the driver wasm: its name, its component's file and the port of a server; may be repeated. A colon at
    /// the end is the end of the file's path
    #[arg(long = "workload", value_name = "NAME=FILE[:PORT]")]
    workloads: Vec<DeclaredWorkload>,
    /// The address on which servers of the driver wasm listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Servers of the driver wasm listen nowhere: this pod alone connects to them
    #[arg(long, conflicts_with = "listen")]
    private_ports: bool,
    #[command(flatten)]
    container: Container,
}

/// A workload on the command line.
#[derive(Debug, Clone)]
struct DeclaredWorkload {
    name: String,
    workload: WasmWorkload,
}

impl FromStr for DeclaredWorkload {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let parts = text.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty());
        let (name, file) = parts.ok_or("it must be NAME=FILE or NAME=FILE:PORT")?;
        let (file, http) = match file.rsplit_once(':') {
            Some((file, "")) => (file, None),
            Some((named, port)) => port.parse().map_or((file, None), |port| (named, Some(port))),
            None => (file, None),
        };
        Ok(Self { name: name.to_owned(), workload: WasmWorkload { component: file.into(), http } })
    }
}

/// The settings of a container.
#[derive(Debug, Args)]
struct Container {
    /// A directory with files of the image; may be repeated for layers, the lowest first. Workloads of the driver wasm read the
    /// last one as /
    #[arg(long = "root", value_name = "DIR", required_if_eq_any([("driver", NAMESPACES), ("driver", WASM)]))]
    roots: Vec<PathBuf>,
    /// A directory of the host and its place in the container; may be repeated
    #[arg(long = "mount", value_name = "DIR:PATH[:ro]", value_parser = mount)]
    mounts: Vec<MountedDirectory>,
    /// The name of the host that the container sees
    #[arg(long, value_name = "NAME", default_value = "pod")]
    host_name: String,
    /// A variable that each process of the container gets; may be repeated
    #[arg(long = "environment", value_name = "NAME=VALUE", value_parser = variable)]
    environment: Vec<(String, String)>,
    /// A file with the owners and modes of the image's files: records `MODE USER GROUP PATH` with a null byte at the end
    #[arg(long, value_name = "FILE")]
    owners: Option<PathBuf>,
    /// The user of processes and files that name none
    #[arg(long, value_name = "ID", requires = "group_id")]
    user_id: Option<u32>,
    /// The group of processes and files that name none
    #[arg(long, value_name = "ID", requires = "user_id")]
    group_id: Option<u32>,
    /// The first of the container's 1,048,576 user and group ids on the host; free ones by default
    #[arg(long, value_name = "ID")]
    first_id: Option<u32>,
    /// A directory, which this user alone may enter, for the network and the users that the containers of one unit share; the
    /// container has its own by default
    #[arg(long, value_name = "DIR")]
    unit_network: Option<PathBuf>,
    /// A port of that network which leads to a WebAssembly workload of the unit; may be repeated
    #[arg(
        long = "forwarded-port",
        value_name = "PORT",
        requires = "unit_network",
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    forwarded_ports: Vec<u16>,
    /// The most bytes of memory, such as 256M; of the driver wasm, that of all instances of a workload together
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory: Option<u64>,
    /// The most bytes of new files, such as 256M; they are in memory
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    disk: Option<u64>,
    /// The most processes and threads
    #[arg(long, value_name = "NUMBER")]
    processes: Option<u32>,
    /// The most processor time, 100 being one processor; of the driver wasm, that of each workload
    #[arg(long, value_name = "NUMBER")]
    cpu_power: Option<u32>,
    /// Refuse to start where the host lacks a part of the confinement
    #[arg(long)]
    require_confinement: bool,
}

impl Pod {
    /// Runs the pod until it ends.
    pub(crate) async fn run(self) -> Result<()> {
        give_back_what_is_freed(Resident::open());
        let shown = self.socket.as_deref().map_or_else(String::new, |socket| socket.display().to_string());
        let ended = match self.driver.as_str() {
            NAMESPACES => contained(self, &shown).await,
            _ => uncontained(self, &shown).await,
        };
        match ended? {
            0 => Ok(()),
            code => Err(Failure::PodEnded(u8::try_from(code).unwrap_or(1))),
        }
    }
}

impl Fenced for Pod {
    /// Raises the fence of a pod with the driver wasm. The processes of a container raise theirs in its namespaces, and the
    /// driver plain has none.
    fn raise_fence(&self) -> Result<Vec<MissingFence>> {
        if self.driver != WASM {
            return Ok(Vec::new());
        }
        let DriverKind::Wasm(options) = driver(self)? else { return Ok(Vec::new()) };
        let WasmOptions { program, root, workloads, directories, .. } = *options;
        fs::create_dir_all(&root).explain(|| format!("{}", root.display()))?;
        forbid_core_dumps().explain(|| "cannot forbid core dumps".to_owned())?;
        let places = PodPlaces {
            root,
            directories,
            components: workloads.into_values().map(|workload| workload.component).collect(),
            program: program.path,
            sockets: self.sockets()?,
        };
        Ok(Fence::Pod(&places).raise())
    }
}

impl Pod {
    /// Returns the sockets that a pod with the driver wasm makes.
    fn sockets(&self) -> Result<PodSockets> {
        let socket = self.socket.clone().map(absolute).transpose()?;
        let directory = socket.and_then(|socket| socket.parent().map(Path::to_owned));
        Ok(match directory.is_none() && self.http.is_none() && self.private_ports {
            true => PodSockets::Pairs,
            false => PodSockets::OfHost(directory),
        })
    }
}

/// Runs the pod without a container.
async fn uncontained(pod: Pod, shown: &str) -> Result<i32> {
    let driver = driver(&pod)?;
    let Pod { socket, keeper, http, i_know_that_nothing_is_isolated: accepts_no_isolation, .. } = pod;
    let keeper =
        keeper.then(input::inherited_socket).transpose().explain(|| "the agent's socket".to_owned())?;
    // The environment of other pods is their agent's, whose files they do not see.
    let certificates = match driver {
        DriverKind::Plain => std::env::var("SSL_CERT_FILE").ok(),
        DriverKind::Wasm(_) => None,
    };
    let options = PodOptions { socket, keeper, http, driver, accepts_no_isolation, certificates };
    let ended = periapt_pod::run(options, cancelled_by_signal()?, || announce(&shown)).await;
    ended.map_err(|error| match error {
        PodError::NoIsolation(_) => {
            with_source(error).with_hint("for a test, add --i-know-that-nothing-is-isolated")
        }
        other => with_source(other),
    })
}

/// Returns the driver of a pod without a container.
fn driver(pod: &Pod) -> Result<DriverKind> {
    match (pod.driver.as_str(), pod.container.roots.last()) {
        ("plain", _) => Ok(DriverKind::Plain),
        (WASM, Some(root)) => Ok(DriverKind::Wasm(Box::new(WasmOptions {
            program: Program {
                path: program::FILE.into(),
                arguments: vec!["agent".into(), "workload".into()],
                environment: Vec::new(),
            },
            root: absolute(root.clone())?,
            workloads: workloads(&pod.workloads)?,
            directories: directories(&pod.container.mounts)?,
            listen: match pod.private_ports {
                true => WasmListen::Private,
                false => WasmListen::Address(pod.listen),
            },
            limits: workload_limits(&pod.container),
            lock: pod.keeper.then(inherited_lock).transpose()?.map(Arc::new),
        }))),
        (other, _) => Err(Failure::misused(format!(
            "there is no driver {other:?}: there are {NAMESPACES}, {WASM} and plain"
        ))),
    }
}

/// Returns the lock of a pod that an agent started, which passes it as standard output.
fn inherited_lock() -> Result<OwnedFd> {
    output::inherited().explain(|| "the agent's lock".to_owned())
}

/// Returns the limits of workloads of the driver wasm, the usual ones where none are given.
fn workload_limits(given: &Container) -> WorkloadLimits {
    let usual = WorkloadLimits::default();
    let memory = given.memory.unwrap_or(usual.memory);
    let cpu = given.cpu_power.map(|power| power.saturating_mul(THOUSANDTHS));
    WorkloadLimits { memory, instance_memory: usual.instance_memory.min(memory), cpu, ..usual }
}

/// Returns the directories of workloads, with absolute paths.
fn directories(mounts: &[MountedDirectory]) -> Result<Vec<WorkloadDirectory>> {
    let directory = |MountedDirectory { source, target, access }: &MountedDirectory| {
        let access = match access {
            MountAccess::ReadOnly => DirectoryAccess::ReadOnly,
            MountAccess::ReadWrite => DirectoryAccess::ReadWrite,
        };
        Ok(WorkloadDirectory { host: absolute(source.clone())?, guest: target.clone(), access })
    };
    mounts.iter().map(directory).collect()
}

/// Returns workloads by name, with absolute paths.
fn workloads(declared: &[DeclaredWorkload]) -> Result<BTreeMap<String, WasmWorkload>> {
    let mut workloads = BTreeMap::new();
    for DeclaredWorkload { name, workload: WasmWorkload { component, http } } in declared {
        let component = absolute(component.clone())?;
        if workloads.insert(name.clone(), WasmWorkload { component, http: *http }).is_some() {
            return Err(Failure::misused(format!("workload {name:?} is declared twice")));
        }
    }
    Ok(workloads)
}

fn absolute(path: PathBuf) -> Result<PathBuf> {
    std::path::absolute(&path).explain(|| format!("{}", path.display()))
}

/// Runs the pod in a container.
async fn contained(pod: Pod, shown: &str) -> Result<i32> {
    let Pod { socket, keeper, http, container, .. } = pod;
    let keeper =
        keeper.then(input::inherited_socket).transpose().explain(|| "the agent's socket".to_owned())?;
    let lock = keeper.as_ref().map(|_| inherited_lock()).transpose()?;
    let usual = ContainerLimits::default();
    let (has_keeper, mut has_begun) = (keeper.is_some(), false);
    let options = ContainerOptions {
        socket: socket.map(absolute).transpose()?,
        keeper,
        lock,
        http,
        layers: container.roots.into_iter().map(absolute).collect::<Result<_>>()?,
        mounts: container.mounts,
        host_name: container.host_name,
        hosts: Vec::new(),
        name_servers: Vec::new(),
        environment: container.environment.into_iter().collect(),
        owners: container.owners.map(absolute).transpose()?,
        user: container
            .user_id
            .zip(container.group_id)
            .map(|(user_id, group_id)| ContainerUser { user_id, group_id }),
        first_id: container.first_id,
        unit_network: container.unit_network.map(absolute).transpose()?,
        forwarded_ports: container.forwarded_ports.into_iter().collect(),
        limits: ContainerLimits {
            memory: container.memory.unwrap_or(usual.memory),
            disk: container.disk.unwrap_or(usual.disk),
            processes: container.processes.unwrap_or(usual.processes),
            cpu: container.cpu_power.map(|power| power.saturating_mul(THOUSANDTHS)),
        },
        require_confinement: container.require_confinement,
        program: ContainerProgram {
            path: program::FILE.into(),
            arguments: ["agent", "pod-inside"].map(OsString::from).to_vec(),
            environment: environment_of_processes(None),
        },
    };
    let ended = periapt_pod::run_in_container(options, cancelled_by_signal()?, |gaps| {
        has_begun = true;
        for gap in gaps {
            tracing::warn!("this host confines the container without a part: {gap}");
        }
        announce(&shown);
    });
    let ended = ended.await;
    ended.map_err(|error| match error {
        _ if has_keeper && !has_begun => Failure::PodNotBegun,
        ContainerError::Unconfined(_) => {
            with_source(error).with_hint("without --require-confinement the container runs all the same")
        }
        other => with_source(other),
    })
}

/// Reads a size in bytes.
fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "a size has a unit, such as 256M".to_owned())
}

/// Reads a mount.
fn mount(text: &str) -> Result<MountedDirectory, String> {
    let (text, access) = match text.strip_suffix(":ro") {
        Some(text) => (text, MountAccess::ReadOnly),
        None => (text, MountAccess::ReadWrite),
    };
    let (source, target) = text.split_once(':').ok_or("it has the form DIR:PATH or DIR:PATH:ro")?;
    Ok(MountedDirectory { source: source.into(), target: target.to_owned(), access })
}

/// Reads a variable of an environment.
fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it has the form NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
