//! A pod from its begin to its end.

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    os::{
        fd::{AsRawFd as _, OwnedFd, RawFd},
        unix::fs::FileTypeExt as _,
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use periapt_pebble::{PodLimits, Supervisor};
use tokio::{
    net::{TcpListener, UnixListener, UnixStream},
    sync::mpsc,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{
    api::{self, PodPrograms},
    authorities::Authorities,
    connection::{Callers, serve_tcp, serve_unix},
    core::{Core, Ways},
    driver::{self, Driver},
    keeper::{Keeper, PodNews, Targets},
    network::Network,
    options::{PodError, PodOptions},
    outward::{Outward, WorkloadNetwork},
};

/// The version of Pebble whose API the pod speaks, for clients that ask.
const VERSION: &str = "v1.32.1";

/// The time that services get to stop before the rest is killed.
const END_TIME: Duration = Duration::from_secs(30);

/// Runs a pod until `cancel`, or until a service ends it, and returns its exit code. No process of it is left then.
///
/// It reaps every child of this process: nothing else may start any.
///
/// # Errors
/// [`PodError`], before anything runs.
pub async fn run(
    options: PodOptions,
    cancel: CancellationToken,
    ready: impl FnOnce(),
) -> Result<i32, PodError> {
    let PodOptions { socket, keeper, http, driver: kind, accepts_no_isolation, certificates } = options;
    if !kind.isolates() && !accepts_no_isolation {
        return Err(PodError::NoIsolation(kind.as_str()));
    }
    let keeper = keeper.map(Keeper::new).transpose().map_err(PodError::Setup)?;
    let listeners = match socket {
        None => None,
        Some(socket) => Some(Listeners::open(socket, http).await?),
    };
    // A pod that is started by hand runs what its client asks for.
    let services = if keeper.is_some() { kind.services() } else { BTreeMap::new() };
    let workload_network = kind.workload_network();
    let (driver, network) = kind.build();
    let (callers, search_path) = (Callers::Named, driver::SEARCH_PATH.to_owned());
    let served = Served {
        listeners,
        keeper,
        driver,
        services,
        callers,
        owner: None,
        network,
        workload_network,
        search_path,
        certificates,
    };
    serve(served, cancel, ready).await
}

/// The parts of a pod.
pub(crate) struct Served {
    pub(crate) listeners: Option<Listeners>,
    pub(crate) keeper: Option<Keeper>,
    pub(crate) driver: Box<dyn Driver>,
    /// The services that the pod has from its start, by name, with their commands.
    pub(crate) services: BTreeMap<String, String>,
    pub(crate) callers: Callers,
    /// The user and the group of new files that name none; the pod's own without them.
    pub(crate) owner: Option<(u32, u32)>,
    pub(crate) network: Network,
    /// The network in which workloads connect to others.
    pub(crate) workload_network: WorkloadNetwork,
    /// The search path of processes that are given none.
    pub(crate) search_path: String,
    /// See [`PodOptions::certificates`].
    pub(crate) certificates: Option<String>,
}

/// Runs a pod of these parts.
pub(crate) async fn serve(
    served: Served,
    cancel: CancellationToken,
    ready: impl FnOnce(),
) -> Result<i32, PodError> {
    let Served {
        listeners,
        keeper,
        mut driver,
        services,
        callers,
        owner,
        network,
        workload_network,
        search_path,
        certificates,
    } = served;
    driver.create().map_err(PodError::Setup)?;
    let (root, file_bounds, terminals) = (driver.root(), driver.file_bounds(), driver.terminals());
    let programs = driver.programs().map_or(PodPrograms::Files { search_path }, PodPrograms::Workloads);
    let (sockets, calls) = keeper.is_some().then(mpsc::unbounded_channel).unzip();
    let outward = Outward::new(workload_network, network.clone(), sockets.as_ref());
    let outward = outward.map_err(PodError::Setup)?;
    if let Some(sockets) = sockets {
        driver.call_by(sockets);
    }
    let (orders, reports, thread) = driver::start(driver).map_err(PodError::Setup)?;
    let settings = settings()?;
    let boot_id = settings.boot_id.clone();
    let supervisor = Supervisor::new(settings);
    let authorities = Authorities::new(root.clone(), certificates);
    let ways = Ways { network: network.clone(), outward, authorities, terminals };
    let (core, handle, mut ends) = Core::new(supervisor, orders.clone(), reports, ways, services);
    let (notices, states) = (handle.notices(), handle.states());
    let state = Arc::new(api::State::new(handle, (root, owner), file_bounds, programs));
    let mut servers = tokio::task::JoinSet::new();
    let mut bound = None;
    if let Some(Listeners { unix, open, bound: file }) = listeners {
        bound = file;
        servers.spawn(serve_unix(unix, api::router(state.clone()), callers));
        if let Some(open) = open {
            servers.spawn(serve_tcp(open, api::open_router(state.clone())));
        }
    }
    let cancel = cancel.child_token();
    match keeper.zip(calls) {
        Some((keeper, calls)) => {
            let (router, gone) = (api::router(state), cancel.clone());
            servers.spawn(async move {
                let news = PodNews { calls, notices, states, ends };
                keeper.serve(Targets { router, network }, boot_id, news).await;
                gone.cancel();
            });
        }
        None => {
            servers.spawn(async move {
                while let Some((service, reason)) = ends.recv().await {
                    tracing::warn!(service, reason, "a service ended");
                }
            });
        }
    }
    ready();
    let code = {
        let late = async {
            cancel.cancelled().await;
            tokio::time::sleep(END_TIME).await;
        };
        tokio::select! {
            code = core.run(cancel.clone()) => code,
            () = late => Ok(0),
        }
    };
    servers.shutdown().await;
    drop(bound);
    let _ = orders.send(driver::Order::End);
    let _ = timeout(END_TIME, tokio::task::spawn_blocking(move || thread.join())).await;
    code
}

fn settings() -> Result<periapt_pebble::PodSettings, PodError> {
    let refused = |error: getrandom::Error| PodError::Setup(io::Error::other(error.to_string()));
    let mut random = [0; 24];
    getrandom::fill(&mut random).map_err(refused)?;
    let hex: String = random.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default().to_owned();
    // In the form of the kernel's own boot id.
    let boot_id = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-");
    let seed = random.iter().skip(16).fold(0, |seed: u64, byte| (seed << 8) | u64::from(*byte));
    Ok(periapt_pebble::PodSettings {
        version: VERSION.to_owned(),
        boot_id,
        seed,
        limits: PodLimits::default(),
    })
}

/// The listeners of a pod.
pub(crate) struct Listeners {
    unix: UnixListener,
    open: Option<TcpListener>,
    bound: Option<Bound>,
}

impl Listeners {
    /// Listens on a socket, and on an address for what is open to all.
    pub(crate) async fn open(socket: PathBuf, http: Option<SocketAddr>) -> Result<Self, PodError> {
        let unix = listen(&socket).await?;
        let bound = Some(Bound(socket));
        let open = match http {
            None => None,
            Some(address) => {
                let listened = TcpListener::bind(address).await;
                Some(listened.map_err(|source| PodError::Listen { of: address.to_string(), source })?)
            }
        };
        Ok(Self { unix, open, bound })
    }

    /// Takes listeners that another process has opened and left open in this one.
    pub(crate) fn inherited(unix: OwnedFd, open: Option<OwnedFd>) -> io::Result<Self> {
        // The other process polls them, too: they do not block.
        let unix = UnixListener::from_std(unix.into())?;
        let open = open.map(|open| TcpListener::from_std(open.into())).transpose()?;
        Ok(Self { unix, open, bound: None })
    }

    /// Returns the descriptors of the listeners.
    pub(crate) fn descriptors(&self) -> (RawFd, Option<RawFd>) {
        (self.unix.as_raw_fd(), self.open.as_ref().map(|open| open.as_raw_fd()))
    }
}

/// The socket's file, which goes with the pod.
struct Bound(PathBuf);

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Listens on a path. The socket of a pod that was killed is replaced, nothing else is.
async fn listen(path: &Path) -> Result<UnixListener, PodError> {
    let refused = |source| PodError::Listen { of: path.display().to_string(), source };
    match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
            if !is_socket {
                return Err(refused(error));
            }
            if UnixStream::connect(path).await.is_ok() {
                return Err(PodError::Taken(path.to_owned()));
            }
            std::fs::remove_file(path).map_err(refused)?;
            UnixListener::bind(path).map_err(refused)
        }
        bound => bound.map_err(refused),
    }
}
