//! The driver for WebAssembly workloads. Each process of the pod is this program once more, with one component in the
//! engine's sandbox and behind the system's fence (`docs/decisions/0086-*`).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::DirBuilder,
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::{fs::DirBuilderExt as _, net::UnixStream, process::CommandExt as _},
    },
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use periapt_helper::{
    DirectoryAccess, Program, WORKLOAD_VARIABLE, WorkloadDirectory, WorkloadKind, WorkloadLimits,
    WorkloadOrder,
};
use periapt_pebble::{ProcessId, Signal, Spawn};
use rustix::{
    fs::Mode,
    io::{FdFlags, fcntl_setfd},
    net::sockopt::set_tcp_nodelay,
    process::{set_parent_process_death_signal, umask},
};
use tokio::sync::mpsc;

use super::{Driver, Plain, Streams, Terminals};
use crate::{
    files::FileBounds,
    names::Names,
    network::{Network, PrivatePorts},
};

/// The bounds on the files of a workload, which are on the disk of the host.
const FILE_BOUNDS: FileBounds = FileBounds { bytes: 256 << 20, files: 10_000 };

/// The options of the driver.
#[derive(Debug, Clone)]
pub struct WasmOptions {
    /// The program that runs a workload when it is started with these arguments and the workload's name.
    pub program: Program,
    /// The directory that workloads read as `/`, and the pod's clients write.
    pub root: PathBuf,
    /// The workloads by name.
    pub workloads: BTreeMap<String, WasmWorkload>,
    /// The other directories of workloads.
    pub directories: Vec<WorkloadDirectory>,
    /// The place where servers listen.
    pub listen: WasmListen,
    /// The limits of each workload.
    pub limits: WorkloadLimits,
    /// A file that the keeper has locked. The processes of workloads hold it until they end, also if the pod is killed.
    pub lock: Option<Arc<OwnedFd>>,
}

/// The place where servers listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WasmListen {
    /// An address of the host.
    Address(IpAddr),
    /// No address: the pod alone reaches them.
    Private,
}

/// A workload as a charm declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasmWorkload {
    /// The component's file.
    pub component: PathBuf,
    /// The port of a server; none for a command.
    pub http: Option<u16>,
}

/// The driver for WebAssembly workloads.
#[derive(Debug)]
pub struct Wasm {
    options: WasmOptions,
    ports: Ports,
    processes: Plain,
    /// The mask of new files' modes, which workloads have.
    mask: Mode,
    /// The way for the sockets on which workloads call other units.
    calls: Option<mpsc::UnboundedSender<OwnedFd>>,
}

/// The ports of servers.
#[derive(Debug)]
enum Ports {
    Tcp(IpAddr),
    Private(PrivatePorts),
}

impl Wasm {
    /// Creates the driver, and the network that servers listen in.
    pub(crate) fn new(options: WasmOptions) -> (Self, Network) {
        let (ports, network) = match &options.listen {
            WasmListen::Address(address) => (Ports::Tcp(*address), Network::System(Names::OfSystem)),
            WasmListen::Private => {
                let ports = PrivatePorts::default();
                (Ports::Private(ports.clone()), Network::Private(ports))
            }
        };
        // New files have the modes that clients name from the start: behind its fence the pod changes no modes.
        let mask = umask(Mode::empty());
        (Self { options, ports, processes: Plain::new(), mask, calls: None }, network)
    }

    /// Returns the workload of a command's first word.
    fn workload(&self, name: &str) -> Result<&WasmWorkload, String> {
        self.options.workloads.get(name).ok_or_else(|| no_workload(name, self.options.workloads.keys()))
    }

    fn order(&self, workload: &WasmWorkload, spawn: &Spawn, calls: Option<RawFd>) -> WorkloadOrder {
        let root = WorkloadDirectory {
            host: self.options.root.clone(),
            guest: "/".to_owned(),
            access: DirectoryAccess::ReadOnly,
        };
        WorkloadOrder {
            component: workload.component.clone(),
            kind: if workload.http.is_some() { WorkloadKind::Http } else { WorkloadKind::Command },
            arguments: spawn.command.clone(),
            environment: spawn.environment.clone().into_iter().collect(),
            directories: std::iter::once(root).chain(self.options.directories.iter().cloned()).collect(),
            limits: self.options.limits,
            calls,
        }
    }

    fn listen(&self, port: u16) -> Result<OwnedFd, String> {
        match &self.ports {
            Ports::Tcp(address) => listen_on((*address, port).into()).map(Into::into),
            Ports::Private(ports) => {
                ports.listen(port).map_err(|error| format!("cannot listen on port {port}: {error}"))
            }
        }
    }
}

/// Returns the reason why a command with this first word cannot be run, with the names of all workloads.
pub(crate) fn no_workload<'a>(name: &str, workloads: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = workloads.map(String::as_str).collect();
    format!("there is no workload {name:?}; the charm declares: {}", names.join(", "))
}

fn listen_on(address: SocketAddr) -> Result<TcpListener, String> {
    let port = address.port();
    let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => format!("port {port} is taken"),
        _ => format!("cannot listen on port {port}: {error}"),
    })?;
    // Its connections inherit the option: a response in pieces waits for no acknowledgement. Behind its fence the
    // workload cannot set it.
    set_tcp_nodelay(&listener, true).map_err(|error| format!("cannot listen on port {port}: {error}"))?;
    Ok(listener)
}

/// Returns the reason why a workload cannot be run in the way that a client asks for.
fn unsupported(name: &str, workload: &WasmWorkload, spawn: &Spawn, streams: &Streams) -> Option<String> {
    let what = if !spawn.account.is_own() {
        "has no users or groups"
    } else if !matches!(spawn.working_dir.as_str(), "" | "/") {
        "has no working directory but /"
    } else if streams.is_terminal {
        "has no terminal"
    } else if workload.http.is_some() && spawn.stdio != periapt_pebble::Stdio::Log {
        "serves HTTP: it runs as a service alone"
    } else {
        return None;
    };
    Some(format!("the WebAssembly workload {name:?} {what}"))
}

impl Driver for Wasm {
    fn create(&mut self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o755).create(&self.options.root)?;
        self.processes.create()
    }

    fn call_by(&mut self, sockets: mpsc::UnboundedSender<OwnedFd>) {
        self.calls = Some(sockets);
    }

    fn root(&self) -> PathBuf {
        self.options.root.clone()
    }

    fn file_bounds(&self) -> Option<FileBounds> {
        Some(FILE_BOUNDS)
    }

    fn terminals(&self) -> Terminals {
        Terminals::Absent
    }

    fn programs(&self) -> Option<BTreeSet<String>> {
        Some(self.options.workloads.keys().cloned().collect())
    }

    fn spawn(&mut self, process: ProcessId, spawn: &Spawn, streams: Streams) -> Result<(), String> {
        let name = spawn.command.first().ok_or("the command is empty")?;
        let workload = self.workload(name)?;
        if let Some(reason) = unsupported(name, workload, spawn, &streams) {
            return Err(reason);
        }
        if !workload.component.is_file() {
            return Err(format!("workload {name:?}: there is no component {:?}", workload.component));
        }
        let pair = self.calls.as_ref().map(|_| UnixStream::pair()).transpose();
        let (calls, its_calls) =
            pair.map_err(|error| format!("cannot run workload {name:?}: {error}"))?.unzip();
        let order = self.order(workload, spawn, its_calls.as_ref().map(AsRawFd::as_raw_fd)).to_text();
        let order = order.ok_or("the environment and the arguments are too large")?;
        let Streams { stdin, stdout, stderr, .. } = streams;
        let stdin = match workload.http {
            Some(port) => self.listen(port)?,
            None => stdin,
        };
        let Program { path, arguments, environment } = &self.options.program;
        let mut command = Command::new(path);
        command
            .args(arguments)
            .arg(name)
            // The workload's own variables are in the order: some would change how this program is loaded.
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .env(WORKLOAD_VARIABLE, order)
            .current_dir("/")
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr))
            .process_group(0);
        let (mask, lock) = (self.mask, self.options.lock.clone());
        let prepare = move || {
            umask(mask);
            // All others are closed.
            its_calls.iter().try_for_each(|socket| fcntl_setfd(socket, FdFlags::empty()))?;
            lock.iter().try_for_each(|lock| fcntl_setfd(lock, FdFlags::empty()))?;
            Ok(set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
        };
        #[expect(unsafe_code, reason = "between fork and exec, it makes system calls alone")]
        unsafe {
            command.pre_exec(prepare);
        }
        let child = command.spawn().map_err(|error| format!("cannot run workload {name:?}: {error}"))?;
        if let (Some(sockets), Some(calls)) = (&self.calls, calls) {
            // Without a keeper there is nobody to take the calls, and each is refused.
            let _ = sockets.send(calls.into());
        }
        self.processes.started(&child, process, spawn)
    }

    fn signal(&mut self, process: ProcessId, signal: Signal) {
        self.processes.signal(process, signal);
    }

    fn exits(&mut self) -> Vec<(ProcessId, i32)> {
        self.processes.exits()
    }

    fn kill(&mut self) {
        self.processes.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};

    use super::*;

    #[test]
    fn connections_of_a_server_send_at_once() {
        let listen = |port: u16| listen_on((Ipv4Addr::LOCALHOST, port).into());
        let listener = listen(0).unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(listener.accept().unwrap().0.nodelay().unwrap());
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listen(port).unwrap_err(), format!("port {port} is taken"));
    }
}
