//! The guard: it makes the namespaces, starts the pod's process in them, and removes all at its end.

use std::{
    ffi::CString,
    fs::File,
    io::{self, Write as _},
    net::IpAddr,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use periapt_helper::{CgroupLimits, Cgroups, MissingBound};
use rustix::{
    fs::Mode,
    process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, umask, waitpid},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, unix::AsyncFd},
    net::UnixStream,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    calls::{self, NewNamespaces},
    error::ContainerError,
    gap::Gap,
    ids::Ids,
    options::{ContainerLimits, ContainerOptions, MountAccess, MountedDirectory},
    order::{InsideOrder, Layer, Line, Order, OrderedMount, OrderedNetwork},
    unit_network::UnitNetwork,
};
use crate::{keeper::Keeper, pod::Listeners};

/// The time in which a container is set up.
const SETUP_TIME: Duration = Duration::from_secs(30);

/// The time in which the pod's process ends after it was asked to: longer than it gives its services.
const END_TIME: Duration = Duration::from_secs(45);

/// The most bytes of all lines of the pod's process.
const MAX_LINES: u64 = 64 << 10;

/// Runs a pod in a container until `cancel`, or until a service ends it, and returns its exit code. No process, mount or
/// cgroup of it is left then. Calls `ready` with the parts of the confinement that this host lacks once the API is
/// served.
///
/// The thread that polls it must live as long as the process: the container ends with that thread.
///
/// # Errors
/// [`ContainerError`]. Nothing of the container is left.
pub async fn run_in_container(
    mut options: ContainerOptions,
    cancel: CancellationToken,
    ready: impl FnOnce(&[Gap]),
) -> Result<i32, ContainerError> {
    let keeper = options.keeper.take().map(Keeper::new).transpose();
    let mut keeper = keeper.map_err(ContainerError::system("take the keeper's socket"))?;
    let mut began = false;
    let ready = |gaps: &[Gap]| {
        began = true;
        ready(gaps);
    };
    let ended = run(options, keeper.as_ref(), cancel, ready).await;
    // From then on, the pod's process alone speaks to the keeper.
    if let (Err(error), Some(keeper), false) = (&ended, &mut keeper, began) {
        keeper.report_failure(&error.to_string()).await;
    }
    ended
}

async fn run(
    options: ContainerOptions,
    keeper: Option<&Keeper>,
    cancel: CancellationToken,
    ready: impl FnOnce(&[Gap]),
) -> Result<i32, ContainerError> {
    options.check()?;
    let (mut home, gap) = Home::choose(&options).await?;
    let listeners = match &options.socket {
        None => None,
        Some(socket) => {
            // The pod's process does not see the users of the host: who may open the socket is its owner, from its first
            // moment on.
            let usual = umask(Mode::from_raw_mode(0o177));
            let listeners = Listeners::open(socket.clone(), options.http).await;
            umask(usual);
            Some(listeners.map_err(ContainerError::Listen)?)
        }
    };
    let ContainerLimits { memory, processes, cpu, .. } = options.limits;
    let (cgroups, missing) = Cgroups::create(&CgroupLimits { memory, processes, cpu });
    let bounds =
        missing.into_iter().map(|MissingBound { bound, reason, remedy }| Gap::new(bound, reason, remedy));
    let mut gaps: Vec<_> = bounds.chain(gap).collect();
    if options.require_confinement && !gaps.is_empty() {
        return Err(ContainerError::Unconfined(gaps));
    }
    let read_only = MountAccess::ReadOnly.attributes();
    let trees = match home.shifts_owners() {
        true => {
            let layers = options.layers.iter().map(|path| (path, read_only));
            let mounts = options.mounts.iter().map(|mount| (&mount.source, mount.access.attributes()));
            let opened = layers.chain(mounts).map(|(path, attributes)| {
                open_layer(path).map(|tree| Tree { tree, path: path.clone(), attributes })
            });
            opened.collect::<Result<Vec<_>, _>>()?
        }
        false => {
            own_layers(&options.layers)?;
            Vec::new()
        }
    };
    let (mut container, line, go) =
        Container::start(&options, &home, (listeners.as_ref(), keeper), &trees, &gaps)?;
    let set_up = async {
        let users = home.give_users(container.process)?;
        if !trees.is_empty() {
            for Tree { tree, path, attributes } in &trees {
                let shifted = calls::set_attributes(tree.as_fd(), *attributes, Some(users.as_fd()));
                shifted
                    .map_err(|source| ContainerError::Layer { layer: path.display().to_string(), source })?;
            }
        }
        { go }.write_all(b"g").map_err(ContainerError::system("start the pod's process"))?;
        container.hear(line, &cgroups, &options, &mut gaps).await
    };
    let began = tokio::select! {
        began = timeout(SETUP_TIME, set_up) => began,
        () = cancel.cancelled() => return container.end(Signal::KILL).await.map(|_| 0),
    };
    let late = || Err(ContainerError::Inside("it takes too long".to_owned()));
    if let Err(error) = began.unwrap_or_else(|_| late()) {
        let _ = container.end(Signal::KILL).await;
        return Err(error);
    }
    drop(trees);
    ready(&gaps);
    let ended = tokio::select! {
        ended = container.ended() => ended,
        () = cancel.cancelled() => container.end(Signal::TERM).await,
        () = home.lost() => {
            let _ = container.end(Signal::TERM).await;
            Err(ContainerError::NetworkEnded)
        }
    };
    home.leave().await;
    ended
}

/// The users and the network of a container.
enum Home {
    /// Users and a network of its own.
    Own(Ids),
    /// Users and a network that its unit's containers share.
    Unit(Box<UnitNetwork>),
}

impl Home {
    /// Chooses users, or joins those of the unit, and says what is missing of them.
    async fn choose(options: &ContainerOptions) -> Result<(Self, Option<Gap>), ContainerError> {
        let Some(directory) = &options.unit_network else {
            let (ids, gap) = Ids::choose(options.first_id)?;
            return Ok((Self::Own(ids), gap));
        };
        let network =
            UnitNetwork::join(directory, options.first_id, &options.forwarded_ports, &options.program)
                .await?;
        let gap = network.properties.gap.clone();
        Ok((Self::Unit(Box::new(network)), gap))
    }

    fn has_users(&self) -> bool {
        match self {
            Self::Own(ids) => ids.has_users(),
            Self::Unit(network) => network.properties.has_more,
        }
    }

    fn shifts_owners(&self) -> bool {
        match self {
            Self::Own(ids) => ids.shifts_owners(),
            Self::Unit(network) => network.properties.are_shifted,
        }
    }

    fn namespaces(&self) -> NewNamespaces<'_> {
        match self {
            Self::Own(_) => NewNamespaces::All,
            Self::Unit(network) => network.namespaces(),
        }
    }

    /// Returns the network of the pod's process that has this socket of calls.
    fn ordered(&self) -> OrderedNetwork {
        match self {
            Self::Own(_) => OrderedNetwork::Own,
            Self::Unit(network) => OrderedNetwork::OfUnit(network.calls().map(|calls| calls.as_raw_fd())),
        }
    }

    /// Gives the pod's process its users, and returns their namespace.
    fn give_users(&mut self, process: Pid) -> Result<OwnedFd, ContainerError> {
        let doing = ContainerError::system("open the namespace of users");
        match self {
            Self::Own(ids) => {
                ids.give(process)?;
                let users = File::open(format!("/proc/{}/ns/user", process.as_raw_nonzero()));
                users.map(OwnedFd::from).map_err(doing)
            }
            Self::Unit(network) => {
                network.calls_are_passed_on();
                network.user_namespace().try_clone_to_owned().map_err(doing)
            }
        }
    }

    /// Waits for the end of the unit's network, which ends its containers. A network of its own ends with the container.
    async fn lost(&mut self) {
        match self {
            Self::Own(_) => std::future::pending().await,
            Self::Unit(network) => network.ended().await,
        }
    }

    /// Leaves the unit's network.
    async fn leave(self) {
        if let Self::Unit(network) = self {
            network.leave().await;
        }
    }
}

/// A mount of a directory, whose owners are shifted once the users of the container are known.
struct Tree {
    tree: OwnedFd,
    path: PathBuf,
    attributes: u64,
}

/// Refuses layers of other users: in a container without a range of ids, their owners are nobody.
fn own_layers(layers: &[PathBuf]) -> Result<(), ContainerError> {
    let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    for layer in layers {
        let found = std::fs::metadata(layer).map_err(ContainerError::system("look at a layer"))?;
        if (found.uid(), found.gid()) != own {
            return Err(ContainerError::Options(format!(
                "{}: belongs to user {} and group {}, and a container of this user needs files of {} and {}: unpack the \
                 image as this user",
                layer.display(),
                found.uid(),
                found.gid(),
                own.0,
                own.1
            )));
        }
    }
    Ok(())
}

/// Returns a mount of a layer's directory.
fn open_layer(path: &Path) -> Result<OwnedFd, ContainerError> {
    let opened = CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
    let opened = opened.and_then(|path| calls::open_tree(&path));
    opened.map_err(|source| ContainerError::Layer { layer: path.display().to_string(), source })
}

/// The pod's process, which is killed if it is dropped.
struct Container {
    process: Pid,
    watch: AsyncFd<OwnedFd>,
    is_reaped: bool,
}

impl Container {
    /// Starts the pod's process. It waits for a byte in the pipe that is returned.
    fn start(
        options: &ContainerOptions,
        home: &Home,
        (listeners, keeper): (Option<&Listeners>, Option<&Keeper>),
        trees: &[Tree],
        gaps: &[Gap],
    ) -> Result<(Self, UnixStream, io::PipeWriter), ContainerError> {
        let doing = ContainerError::system("start the pod's process");
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(&doing)?;
        let (waits, go) = io::pipe().map_err(&doing)?;
        let paths = options.layers.iter().chain(options.mounts.iter().map(|mount| &mount.source));
        let mut layers: Vec<_> = match trees {
            [] => paths.cloned().map(Layer::Path).collect(),
            trees => trees.iter().map(|Tree { tree, .. }| Layer::Tree(tree.as_raw_fd())).collect(),
        };
        let sources = layers.split_off(options.layers.len());
        let mounts = sources.into_iter().zip(&options.mounts).map(|(source, mount)| {
            let MountedDirectory { target, access, .. } = mount.clone();
            OrderedMount { source, target, access }
        });
        let (listener, http) = listeners.map(Listeners::descriptors).unzip();
        // In a container with one user, that one owns all.
        let owners = options.owners.as_ref().filter(|_| home.has_users()).map(File::open);
        let owners = owners.transpose().map_err(ContainerError::system("open the file of owners"))?;
        let order = Order {
            guard: rustix::process::getpid().as_raw_nonzero().get(),
            owner: rustix::process::geteuid().as_raw(),
            control: theirs.as_raw_fd(),
            listener,
            http: http.flatten(),
            keeper: keeper.map(Keeper::descriptor),
            lock: options.lock.as_ref().map(|lock| lock.as_raw_fd()),
            network: home.ordered(),
            forwarded: options.forwarded_ports.clone(),
            layers,
            mounts: mounts.collect(),
            owners: owners.as_ref().map(|owners| owners.as_raw_fd()),
            has_users: home.has_users(),
            user: options.user,
            host_name: options.host_name.clone(),
            hosts: hosts(options),
            resolv: options.name_servers.iter().map(|server| format!("nameserver {server}\n")).collect(),
            environment: options.environment.clone(),
            limits: options.limits,
            require_confinement: options.require_confinement,
            gaps: gaps.to_vec(),
        };
        let mut kept = vec![order.control];
        kept.extend([order.listener, order.http, order.keeper, order.lock].into_iter().flatten());
        kept.extend(order.owners);
        if let OrderedNetwork::OfUnit(socket) = order.network {
            kept.extend(socket);
        }
        kept.extend(trees.iter().map(|Tree { tree, .. }| tree.as_raw_fd()));
        let image = InsideOrder::Pod(Box::new(order)).image(&options.program).map_err(&doing)?;
        let process = calls::start(home.namespaces(), &image, (&waits, &go), &kept)
            .map_err(ContainerError::UserNamespace)?;
        let watch = pidfd_open(process, PidfdFlags::empty()).map_err(io::Error::from);
        let container =
            watch.and_then(|watch| Ok(Self { process, watch: watch_of(watch)?, is_reaped: false }));
        let container = container.map_err(|error| {
            let _ = kill_process(process, Signal::KILL);
            let _ = waitpid(Some(process), WaitOptions::empty());
            doing(error)
        })?;
        ours.set_nonblocking(true).map_err(&doing)?;
        let line = UnixStream::from_std(ours).map_err(&doing)?;
        Ok((container, line, go))
    }

    /// Follows the set-up, until the API is served.
    async fn hear(
        &mut self,
        line: UnixStream,
        cgroups: &Cgroups,
        options: &ContainerOptions,
        gaps: &mut Vec<Gap>,
    ) -> Result<(), ContainerError> {
        let doing = ContainerError::system("follow the set-up of the container");
        let (read, mut write) = line.into_split();
        let mut lines = BufReader::new(read.take(MAX_LINES)).lines();
        loop {
            let Some(line) = lines.next_line().await.map_err(&doing)? else {
                return Err(ContainerError::Inside("the pod's process has ended".to_owned()));
            };
            match serde_json::from_str(&line).map_err(|error| doing(error.into()))? {
                Line::Init(process) => {
                    let added = Pid::from_raw(process).ok_or_else(|| io::Error::other("no process"));
                    let mut answer = String::new();
                    if let Err(error) = added.and_then(|process| cgroups.add(process)) {
                        let gap = Gap::new("cgroups", format!("cannot move a process: {error}"), "");
                        if options.require_confinement {
                            return Err(ContainerError::Unconfined(vec![gap]));
                        }
                        answer = serde_json::to_string(&gap).map_err(|error| doing(error.into()))?;
                        gaps.push(gap);
                    }
                    answer.push('\n');
                    write.write_all(answer.as_bytes()).await.map_err(&doing)?;
                }
                Line::Ready(more) => {
                    gaps.extend(more);
                    return Ok(());
                }
                Line::Failed(reason) => return Err(ContainerError::Inside(reason)),
            }
        }
    }

    /// Waits for the end of the pod's process.
    async fn ended(&mut self) -> Result<i32, ContainerError> {
        let waiting = ContainerError::system("wait for the pod's process");
        let _ = self.watch.readable().await.map_err(&waiting)?;
        let ended = waitpid(Some(self.process), WaitOptions::empty());
        self.is_reaped = true;
        let status = ended.map_err(|error| waiting(error.into()))?.map(|(_, status)| status);
        match status.map(|status| (status.exit_status(), status.terminating_signal())) {
            Some((Some(code), _)) => Ok(code),
            Some((_, Some(signal))) => Err(ContainerError::Killed(signal)),
            _ => Err(ContainerError::Killed(0)),
        }
    }

    /// Ends the pod's process, and waits for its end.
    async fn end(&mut self, signal: Signal) -> Result<i32, ContainerError> {
        let _ = kill_process(self.process, signal);
        match timeout(END_TIME, self.ended()).await {
            Ok(ended) => ended,
            Err(_) => {
                let _ = kill_process(self.process, Signal::KILL);
                self.ended().await
            }
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = kill_process(self.process, Signal::KILL);
            let _ = waitpid(Some(self.process), WaitOptions::empty());
        }
    }
}

fn watch_of(process: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(unsafe_code, reason = "the descriptor is owned, and stays the same one until it is dropped")]
    let watched = unsafe { AsyncFd::register(process) };
    Ok(watched?)
}

/// Returns the content of `/etc/hosts`.
fn hosts(options: &ContainerOptions) -> String {
    let own: [(IpAddr, String); 3] = [
        (std::net::Ipv4Addr::LOCALHOST.into(), "localhost".to_owned()),
        (std::net::Ipv6Addr::LOCALHOST.into(), "localhost ip6-localhost ip6-loopback".to_owned()),
        (std::net::Ipv4Addr::LOCALHOST.into(), options.host_name.clone()),
    ];
    // Further lines may say which address the host has: the first line with a name counts.
    let names_host = options.hosts.iter().any(|(_, name)| *name == options.host_name);
    let own = own.into_iter().take(if names_host { 2 } else { 3 });
    own.chain(options.hosts.iter().cloned()).map(|(address, name)| format!("{address}\t{name}\n")).collect()
}
