//! The network that the containers of one unit share, as those of a pod in Kubernetes do: a server in one of them is
//! reached by the others at `localhost`.
//!
//! A process of its own holds the network, its gate, and the users of all its containers. The first guard that needs it
//! starts it; guards join it by a socket in a directory of the agent's own, and each container makes its other
//! namespaces in those. It ends with its last guard. A file in the directory is locked for as long as it runs, so that
//! there is one at a time.
//!
//! WebAssembly workloads of the unit are in no network. Their ports are the network's, too: its gate listens there, and
//! leads to them by the keeper.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
        unix::net::{UnixListener, UnixStream as Connected},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    task::spawn_blocking,
    time::{Instant, sleep, timeout},
};

use super::{
    calls::{self, NewNamespaces},
    error::ContainerError,
    ids::Ids,
    options::ContainerProgram,
    order::{InsideOrder, NetworkOrder, NetworkProperties},
    wire,
};

pub(super) mod process;

/// The time in which a network begins, an earlier one has ended, or one that runs answers.
const JOINED_WITHIN: Duration = Duration::from_secs(30);

/// The most networks that a guard starts. One that it starts lasts until it joins, unless it cannot be set up.
const MAX_STARTS: usize = 3;

/// The pause between two attempts to join.
const TRIED_EVERY: Duration = Duration::from_millis(20);

/// The time in which a network that was the last guard's ends.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// The socket by which guards join.
const SOCKET: &str = "socket";

/// The file that is locked while the network runs. Agents know its name (`keeper/pods/lock.rs`).
const LOCK: &str = "lock";

/// The answer to a guard.
#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    /// The network can be joined: with the descriptors of its users and of itself, and, if it has a gate, with a socket on
    /// which it calls other units.
    Joined(NetworkProperties),
    /// The network cannot be made.
    Failed(String),
}

/// A network that a guard has joined.
#[derive(Debug)]
pub(super) struct UnitNetwork {
    pub(super) properties: NetworkProperties,
    user_namespace: OwnedFd,
    network: OwnedFd,
    calls: Option<OwnedFd>,
    line: UnixStream,
    place: Place,
}

/// The directory of a network. It is used by its descriptor, as the path of a socket may have 108 bytes alone.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    directory: OwnedFd,
}

impl UnitNetwork {
    /// Joins the network in a directory, which is made if needed, as is the network. One that forwards other ports is that of
    /// containers of an earlier charm, whose end is waited for.
    pub(super) async fn join(
        directory: &Path,
        first_id: Option<u32>,
        forwarded: &BTreeSet<u16>,
        program: &ContainerProgram,
    ) -> Result<Self, ContainerError> {
        let doing = ContainerError::system("join the network of the unit");
        let (deadline, mut starts, mut is_of_others) = (Instant::now() + JOINED_WITHIN, 0, false);
        loop {
            // An agent may remove the directory of a network that has ended.
            let place = Place::open(directory).map_err(&doing)?;
            if let Some(line) = place.connect().await.map_err(&doing)? {
                // None: it has just ended.
                if let Some(answered) = received(line).await.map_err(&doing)? {
                    let joined = place.joined(answered).await?;
                    if joined.properties.forwarded == *forwarded {
                        return Ok(joined);
                    }
                    // It ends with the containers that it is for, and the next one is another's attempt, too.
                    (starts, is_of_others) = (0, true);
                }
            } else if let Some(lock) = place.try_lock().map_err(&doing)? {
                let started = match starts {
                    MAX_STARTS => Err(failed("its process ends as it begins")),
                    _ => start(&place, &lock, (first_id, forwarded), program),
                };
                if let Err(error) = started {
                    place.remove();
                    return Err(error);
                }
                starts += 1;
                continue;
            }
            if Instant::now() >= deadline {
                if is_of_others {
                    return Err(failed(
                        "containers of an earlier charm, whose network forwards other ports, have not ended",
                    ));
                }
                return Err(doing(io::ErrorKind::TimedOut.into()));
            }
            sleep(TRIED_EVERY).await;
        }
    }

    /// Returns the namespaces of a container in this network.
    pub(super) fn namespaces(&self) -> NewNamespaces<'_> {
        NewNamespaces::Beside { users: self.user_namespace.as_fd(), network: self.network.as_fd() }
    }

    /// Returns the namespace of its users.
    pub(super) fn user_namespace(&self) -> BorrowedFd<'_> {
        self.user_namespace.as_fd()
    }

    /// Returns the socket on which the network's gate calls other units; none if it has no gate.
    pub(super) fn calls(&self) -> Option<BorrowedFd<'_>> {
        self.calls.as_ref().map(|calls| calls.as_fd())
    }

    /// Forgets the socket of calls, once the pod's process has it.
    pub(super) fn calls_are_passed_on(&mut self) {
        self.calls = None;
    }

    /// Waits for the end of the network.
    pub(super) async fn ended(&mut self) {
        // Nothing comes but the end.
        let _ = self.line.read_u8().await;
    }

    /// Leaves the network. It ends, and its directory goes, if nobody else is in it.
    pub(super) async fn leave(mut self) {
        let _ = self.line.shutdown().await;
        let _ = timeout(ENDS_WITHIN, self.ended()).await;
        // One in which others are has its lock.
        if let Ok(Some(_lock)) = self.place.try_lock() {
            self.place.remove();
        }
    }
}

impl Place {
    fn open(path: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let directory = File::options().read(true).custom_flags(flags).open(path)?.into();
        Ok(Self { path: path.to_owned(), directory })
    }

    fn at(&self, name: &str) -> PathBuf {
        format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd()).into()
    }

    /// Connects to the network; none if there is none.
    async fn connect(&self) -> io::Result<Option<UnixStream>> {
        match UnixStream::connect(self.at(SOCKET)).await {
            Ok(line) => Ok(Some(line)),
            // It is reset if its process ends before it takes the connection.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound
                        | io::ErrorKind::ConnectionRefused
                        | io::ErrorKind::ConnectionReset
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Takes the lock of the network; none if one runs.
    fn try_lock(&self) -> io::Result<Option<File>> {
        let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(self.at(LOCK));
        let file = match opened {
            // The directory was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Listens for guards, in the place of a network that has ended.
    fn listen(&self) -> io::Result<UnixListener> {
        match fs::remove_file(self.at(SOCKET)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        UnixListener::bind(self.at(SOCKET))
    }

    /// Removes the directory, whose lock the caller holds.
    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.path);
    }

    /// Removes the directory once the process has ended that could not make a network.
    async fn remove_failed(&self) {
        let deadline = Instant::now() + ENDS_WITHIN;
        while Instant::now() < deadline {
            if let Ok(Some(_lock)) = self.try_lock() {
                return self.remove();
            }
            sleep(TRIED_EVERY).await;
        }
    }

    /// Returns the network that has answered.
    async fn joined(self, (answer, descriptors, line): Answered) -> Result<UnitNetwork, ContainerError> {
        let properties = match answer {
            Answer::Joined(properties) => properties,
            Answer::Failed(reason) => {
                self.remove_failed().await;
                return Err(failed(&reason));
            }
        };
        let mut descriptors = descriptors.into_iter();
        let (Some(user_namespace), Some(network)) = (descriptors.next(), descriptors.next()) else {
            return Err(failed("it came without its namespaces"));
        };
        Ok(UnitNetwork { properties, user_namespace, network, calls: descriptors.next(), line, place: self })
    }
}

/// Returns the error of a network that cannot be had.
fn failed(reason: &str) -> ContainerError {
    ContainerError::Inside(format!("the network of the unit: {reason}"))
}

/// An answer with its descriptors, and the connection on which it came.
type Answered = (Answer, Vec<OwnedFd>, UnixStream);

/// Receives the answer of a network; none if it has ended.
async fn received(line: UnixStream) -> io::Result<Option<Answered>> {
    let line = line.into_std()?;
    line.set_nonblocking(false)?;
    line.set_read_timeout(Some(JOINED_WITHIN))?;
    let read = move || (wire::receive::<Answer>(&line), line);
    let (answer, line): (_, Connected) = spawn_blocking(read).await.map_err(io::Error::other)?;
    let (answer, descriptors) = match answer {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
        Err(error) => return Err(error),
    };
    line.set_nonblocking(true)?;
    Ok(Some((answer, descriptors, UnixStream::from_std(line)?)))
}

/// Starts the process of a network, which keeps the lock. Guards connect from then on.
fn start(
    place: &Place,
    lock: &File,
    (first_id, forwarded): (Option<u32>, &BTreeSet<u16>),
    program: &ContainerProgram,
) -> Result<(), ContainerError> {
    let doing = ContainerError::system("start the network of the unit");
    let (ids, gap) = Ids::choose(first_id)?;
    let listener = place.listen().map_err(&doing)?;
    let kept: Vec<_> = [listener.as_raw_fd(), lock.as_raw_fd()].into_iter().chain(ids.lock()).collect();
    let order = InsideOrder::Network(NetworkOrder {
        listener: listener.as_raw_fd(),
        lock: lock.as_raw_fd(),
        properties: NetworkProperties {
            has_more: ids.has_users(),
            are_shifted: ids.shifts_owners(),
            gap,
            forwarded: forwarded.clone(),
        },
    });
    let (waits, go) = io::pipe().map_err(&doing)?;
    let program = order.image(program).map_err(&doing)?;
    let process = calls::start(NewNamespaces::All, &program, (&waits, &go), &kept)
        .map_err(ContainerError::UserNamespace)?;
    let given = ids.give(process).and_then(|()| io::Write::write_all(&mut { go }, b"g").map_err(&doing));
    if given.is_err() {
        end(process);
    }
    given
}

fn end(process: Pid) {
    let _ = kill_process(process, Signal::KILL);
    let _ = waitpid(Some(process), WaitOptions::empty());
}
