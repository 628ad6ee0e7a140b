//! The process of a unit's network, inside of its namespaces. It has no files, no rights, and no way to the keeper: what
//! its gate takes goes to the pods of the unit's containers, which pass it on to the keeper.

use std::{
    fs::File,
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::{UnixListener, UnixStream as Started},
    },
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use rustix::{
    net::sockopt::{Timeout, set_socket_timeout},
    process::{DumpableBehavior, set_dumpable_behavior, setsid},
    thread::CapabilitySet,
};
use tokio::{
    io::AsyncReadExt as _,
    net::UnixStream,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use super::{
    super::{
        calls,
        gate::{Gate, GateCalls},
        order::{NetworkOrder, NetworkProperties},
        privileges, stage, syscalls, wire,
    },
    Answer,
};

/// The time in which the guard that has started the network joins it.
const FIRST_WITHIN: Duration = Duration::from_secs(30);

/// The pause after a guard could not be accepted, as when descriptors are used up.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The most guards: a charm declares a few containers.
const MAX_GUARDS: usize = 128;

/// A network that can be joined.
struct Network {
    users: OwnedFd,
    network: OwnedFd,
    gate: Option<Gate>,
}

/// Runs the process until the last guard has left.
pub(in super::super) fn run(order: &NetworkOrder) -> Result<ExitCode, String> {
    let listener = calls::inherited(order.listener).map_err(|error| error.to_string())?;
    let lock = calls::inherited(order.lock).map_err(|error| error.to_string())?;
    let listener = UnixListener::from(listener);
    let failed = match set_up(&order.properties) {
        Ok(network) => match serve(listener, lock, network, &order.properties) {
            Ok(()) => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error.to_string()),
        },
        Err(reason) => reason,
    };
    // The guard that has started it connects to hear the reason, unless it was killed.
    let _ = set_socket_timeout(&listener, Timeout::Recv, Some(FIRST_WITHIN));
    if let Ok((line, _)) = listener.accept() {
        let _ = wire::send(&line, &Answer::Failed(failed.clone()), &[]);
    }
    Err(failed)
}

/// Opens the gate, and gives up what this took.
fn set_up(properties: &NetworkProperties) -> Result<Network, String> {
    let failed = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
    let null = File::options().read(true).write(true).open("/dev/null").map_err(failed("open /dev/null"))?;
    // It outlives the guard that has started it, with whose terminal and log it has nothing to do.
    setsid().map_err(|error| failed("leave the session")(error.into()))?;
    calls::switch_loopback_on().map_err(failed("switch the loopback interface on"))?;
    let gate = Gate::open_if_possible(&properties.forwarded);
    let namespace = |name: &str| File::open(format!("/proc/self/ns/{name}")).map(OwnedFd::from);
    let users = namespace("user").map_err(failed("open the namespace of users"))?;
    let network = namespace("net").map_err(failed("open the namespace of the network"))?;
    stage::have_no_files()?;
    calls::replace_standard_streams(null.as_fd()).map_err(failed("leave the log"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())?;
    privileges::keep(CapabilitySet::empty()).map_err(failed("give up rights"))?;
    syscalls::confine()?;
    Ok(Network { users, network, gate })
}

/// Lets guards join until the last one has left.
fn serve(
    listener: UnixListener,
    lock: OwnedFd,
    network: Network,
    properties: &NetworkProperties,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let Network { users, network, gate } = network;
        let calls = gate.map(|gate| {
            let calls = Arc::new(GateCalls::default());
            tokio::spawn(gate.serve(Arc::clone(&calls)));
            calls
        });
        let (mut guards, mut has_begun) = (JoinSet::new(), false);
        let first = Instant::now() + FIRST_WITHIN;
        loop {
            tokio::select! {
                accepted = listener.accept(), if guards.len() < MAX_GUARDS => {
                    let Ok((line, _)) = accepted else {
                        sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    let greeted = greet(line, [&users, &network], properties, calls.as_deref());
                    // A guard that has gone meanwhile is none.
                    if let Ok((mut line, way)) = greeted {
                        has_begun = true;
                        let calls = calls.clone();
                        guards.spawn(async move {
                            let _ = line.read_u8().await;
                            if let Some((calls, way)) = calls.zip(way) {
                                calls.remove(&way);
                            }
                            line
                        });
                    }
                }
                Some(line) = guards.join_next() => if guards.is_empty() {
                    // The last guard sees the end once the next network may begin.
                    drop((listener, lock));
                    drop(line);
                    return Ok(());
                },
                () = sleep_until(first), if !has_begun => return Ok(()),
            }
        }
    })
}

/// Gives a guard what it needs to join. Returns its connection, and the socket on which the gate calls by its pod.
fn greet(
    line: UnixStream,
    namespaces: [&OwnedFd; 2],
    properties: &NetworkProperties,
    calls: Option<&GateCalls>,
) -> io::Result<(UnixStream, Option<Arc<UnixStream>>)> {
    let line = line.into_std()?;
    // The answer is short, and nothing else was sent before.
    line.set_nonblocking(false)?;
    let pair = calls.map(|_| Started::pair()).transpose()?;
    let descriptors = namespaces.into_iter().map(|namespace| namespace.as_fd());
    let descriptors: Vec<_> = descriptors.chain(pair.as_ref().map(|(_, theirs)| theirs.as_fd())).collect();
    wire::send(&line, &Answer::Joined(properties.clone()), &descriptors)?;
    line.set_nonblocking(true)?;
    let way = match calls.zip(pair) {
        Some((calls, (ours, _))) => {
            ours.set_nonblocking(true)?;
            Some(calls.add(UnixStream::from_std(ours)?))
        }
        None => None,
    };
    Ok((UnixStream::from_std(line)?, way))
}
