//! The pod's process inside of the namespaces.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead as _, BufReader, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    process::ExitCode,
    sync::Arc,
};

use rustix::process::{
    DumpableBehavior, Pid, Signal, getppid, set_dumpable_behavior, set_parent_process_death_signal,
};
use tokio_util::sync::CancellationToken;

use super::{
    calls,
    driver::Namespaces,
    gap::{Gap, summary},
    gate::{Gate, GateCalls},
    init,
    options::ContainerUser,
    order::{InsideOrder, Line, Order, OrderedNetwork},
    owners, privileges, stage, syscalls,
    unit_network::process,
    wire::{self, FromInit, ToInit},
};
use crate::{
    authorities,
    connection::Callers,
    driver::SEARCH_PATH,
    keeper::Keeper,
    network::Network,
    options::PodError,
    outward::WorkloadNetwork,
    pod::{Listeners, Served, serve},
};

/// The exit code of a pod whose container cannot be set up or is lost.
const FAILED: u8 = 1;

/// The most threads that wait for files: with the others, fewer than
/// [`POD_THREADS`](privileges::POD_THREADS).
const BLOCKING_THREADS: usize = 64;

/// Runs a process that [`run_in_container`](super::run_in_container) has started in namespaces, until it ends: that of the
/// pod, or that of a network of several. The caller is the only thread of the process that does anything.
#[must_use]
pub fn run_contained(order: &str) -> ExitCode {
    let order = match serde_json::from_str::<InsideOrder>(order) {
        Ok(InsideOrder::Pod(order)) => order,
        // A guard hears of its failures.
        Ok(InsideOrder::Network(order)) => return process::run(&order).unwrap_or_else(|_| FAILED.into()),
        Err(_) => return FAILED.into(),
    };
    let Ok(control) = calls::inherited(order.control) else { return FAILED.into() };
    let mut control = UnixStream::from(control);
    let code = match set_up(&order, &control) {
        Ok(pod) => run(&order, pod, &mut control),
        Err(reason) => Err(reason),
    };
    code.unwrap_or_else(|reason| {
        // A guard that has gone, or that knows already that the container has begun, does not need it.
        let _ = tell(&mut control, &Line::Failed(reason));
        FAILED.into()
    })
}

/// A container that is set up.
struct Container {
    init: Pid,
    socket: UnixStream,
    way: Way,
    /// The file that the keeper has locked.
    _lock: Option<OwnedFd>,
    /// The parts of the confinement that are missing inside.
    gaps: Vec<Gap>,
    /// All that is missing, for the keeper.
    lacks: String,
}

/// The way of the container's workloads to other units.
enum Way {
    /// Its own gate; none on a host that cannot give it.
    Gate(Option<Gate>),
    /// The socket on which the gate of the unit's network calls; none if that has no gate.
    OfUnit(Option<OwnedFd>),
}

impl Way {
    /// Opens the container's own gate, or takes that of its unit.
    fn open(order: &Order) -> Result<Self, String> {
        match order.network {
            OrderedNetwork::Own => {
                calls::switch_loopback_on()
                    .map_err(|error| format!("cannot switch the loopback interface on: {error}"))?;
                Ok(Self::Gate(order.keeper.and_then(|_| Gate::open_if_possible(&BTreeSet::new()))))
            }
            OrderedNetwork::OfUnit(socket) => {
                let socket = socket.map(calls::inherited).transpose();
                Ok(Self::OfUnit(socket.map_err(|error| error.to_string())?))
            }
        }
    }

    fn is_there(&self) -> bool {
        matches!(self, Self::Gate(Some(_)) | Self::OfUnit(Some(_)))
    }
}

fn tell(control: &mut UnixStream, line: &Line) -> io::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    control.write_all(text.as_bytes())
}

/// Mounts the files, starts the init, and gives up the rights that this took. No byte of the image is read before.
fn set_up(order: &Order, control: &UnixStream) -> Result<Container, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| error.to_string())?;
    if getppid().map(|parent| parent.as_raw_nonzero().get()) != Some(order.guard) {
        return Err("the guard has ended".to_owned());
    }
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let way = Way::open(order)?;
    let lock = order.lock.map(calls::inherited).transpose().map_err(failed("take the lock"))?;
    let resolv = if way.is_there() { Gate::resolv() } else { order.resolv.clone() };
    let mut gaps = stage::build(order, &resolv)?;
    let (socket, theirs) = UnixStream::pair().map_err(failed("connect to the init"))?;
    let Some(init) = calls::fork_as_init().map_err(failed("start the init"))? else {
        init::run(order, &theirs, lock.as_ref().map(|lock| lock.as_fd()));
    };
    drop(theirs);
    let mut line = control;
    let text =
        serde_json::to_string(&Line::Init(init.as_raw_nonzero().get())).map_err(|error| error.to_string())?;
    writeln!(line, "{text}").map_err(failed("speak to the guard"))?;
    let mut answer = String::new();
    BufReader::with_capacity(1, line).read_line(&mut answer).map_err(failed("hear the guard"))?;
    let moved: Option<Gap> = match answer.as_str() {
        "" => return Err("the guard has ended".to_owned()),
        "\n" => None,
        gap => Some(serde_json::from_str(gap).map_err(|error| error.to_string())?),
    };
    let hear = || match wire::receive::<FromInit>(&socket) {
        Ok(Some((FromInit::Failed(reason), _))) => Err(reason),
        Ok(Some((message, _))) => Ok(message),
        Ok(None) => Err("the init has ended".to_owned()),
        Err(error) => Err(format!("cannot hear the init: {error}")),
    };
    wire::send(&socket, &ToInit::Enter, &[]).map_err(failed("speak to the init"))?;
    if !matches!(hear()?, FromInit::Mounted) {
        return Err("the init speaks out of turn".to_owned());
    }
    stage::enter().map_err(failed("enter the container's root"))?;
    wire::send(&socket, &ToInit::Enter, &[]).map_err(failed("speak to the init"))?;
    let FromInit::Ready(more) = hear()? else { return Err("the init speaks out of turn".to_owned()) };
    gaps.extend(more);
    if order.require_confinement && !gaps.is_empty() {
        let gaps: Vec<_> = gaps.iter().map(ToString::to_string).collect();
        return Err(format!("this host cannot confine a container: {}", gaps.join("; ")));
    }
    let lacks = summary(order.gaps.iter().chain(&moved).chain(&gaps));
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    privileges::keep(privileges::POD).map_err(failed("give up rights"))?;
    syscalls::confine()?;
    if let Some(table) = order.owners {
        owners::apply(calls::inherited(table).map_err(|error| error.to_string())?)?;
    }
    if let Some(user) = order.user.filter(|_| order.has_users) {
        owners::share(&order.mounts, user)?;
    }
    Ok(Container { init, socket, way, _lock: lock, gaps, lacks })
}

fn run(order: &Order, container: Container, control: &mut UnixStream) -> Result<ExitCode, String> {
    let Container { init, socket, way, _lock, gaps, lacks } = container;
    let (gate, taken) = match way {
        Way::Gate(Some(gate)) => {
            let (calls, taken) = UnixStream::pair().map_err(|error| error.to_string())?;
            (Some((gate, calls)), Some(taken.into()))
        }
        Way::Gate(None) => (None, None),
        Way::OfUnit(taken) => (None, taken),
    };
    let driver = Namespaces::new(socket, init, taken).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let ended = runtime.block_on(async {
        let taken = |descriptor: Option<RawFd>| descriptor.map(calls::inherited).transpose();
        let http = taken(order.http).map_err(PodError::Setup)?;
        let listener = taken(order.listener).map_err(PodError::Setup)?;
        let listeners = listener.map(|listener| Listeners::inherited(listener, http)).transpose();
        let listeners = listeners.map_err(PodError::Setup)?;
        let keeper = taken(order.keeper).map_err(PodError::Setup)?;
        let keeper = keeper.map(|keeper| Keeper::new(keeper.into())).transpose().map_err(PodError::Setup)?;
        let keeper = keeper.map(|keeper| keeper.on_host_that_lacks(lacks));
        let cancel = CancellationToken::new();
        let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
            .map_err(PodError::Setup)?;
        let stop = cancel.clone();
        tokio::spawn(async move {
            term.recv().await;
            stop.cancel();
        });
        if let Some((gate, socket)) = gate {
            let calls = Arc::<GateCalls>::default();
            socket.set_nonblocking(true).map_err(PodError::Setup)?;
            calls.add(tokio::net::UnixStream::from_std(socket).map_err(PodError::Setup)?);
            tokio::spawn(async move {
                if let Err(error) = gate.serve(calls).await {
                    tracing::error!("workloads cannot call other units: {error}");
                }
            });
        }
        let search_path = order.environment.get("PATH").map_or(SEARCH_PATH, String::as_str).to_owned();
        // In a container with one user, that one owns all.
        let owner = order.user.filter(|_| order.has_users);
        let owner = owner.map(|ContainerUser { user_id, group_id }| (user_id, group_id));
        let served = Served {
            listeners,
            keeper,
            driver: Box::new(driver),
            callers: Callers::Owner(order.owner),
            owner,
            services: BTreeMap::new(),
            network: Network::Container(Arc::new(order.forwarded.clone())),
            workload_network: WorkloadNetwork::OfContainer,
            search_path,
            certificates: order.environment.get(authorities::VARIABLE).cloned(),
        };
        serve(served, cancel, || {
            let _ = tell(control, &Line::Ready(gaps));
        })
        .await
    });
    // What still waits for a file that does not answer is left to the end of the process.
    runtime.shutdown_background();
    match ended {
        Ok(code) => Ok(u8::try_from(code).unwrap_or(FAILED).into()),
        Err(error) => {
            tracing::error!("{error}");
            Err(error.to_string())
        }
    }
}
