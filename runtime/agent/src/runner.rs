//! The runner: one process per model, which mirrors the model's view and runs its units' hooks.

use std::{
    future::Future,
    io,
    os::fd::AsFd as _,
    process::ExitCode,
    sync::{Arc, OnceLock},
};

use periapt_helper::{Fence, Resident, RunnerPaths, forbid_core_dumps, give_back_what_is_freed};
use periapt_host_api::{
    Incarnation,
    agent::{RunnerAnswer, RunnerCommand},
    timing::RUNNER_ALIVE_EVERY,
    view::FrameLines,
};
use periapt_sandbox::Sandbox;
use periapt_telemetry::export;
use rustix::process::Signal;
use tokio::{
    net::UnixStream,
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::sleep,
};

use crate::protocol::{
    Call, CallOutcome, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Incoming, LinkError, Start, ToKeeper, ToRunner,
    split,
};
use periapt_client::Backoff;

mod admission;
mod charms;
mod exec;
mod fetch;
mod groups;
mod hook;
mod leases;
mod link;
mod mirror;
mod quarantine;
mod storage;
#[cfg(test)]
mod tests;
mod units;
mod workloads;

use admission::Admission;
use charms::PreparedCharms;
use fetch::Fetch;
use groups::Groups;
use leases::LeaseBook;
use link::Link;
use mirror::Mirror;
use storage::Storages;
use workloads::Workloads;

/// Spans of one message. Each takes a few hundred bytes: a message stays far below its bound.
const SPANS_AT_A_TIME: usize = 128;

/// An error that ends a runner, other than its keeper's request.
#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    /// The arguments are not a keeper's.
    #[error("the last argument must be the runner's directories, as an agent gives them")]
    Paths(#[source] serde_json::Error),
    /// Standard input is not a keeper's socket.
    #[error("a runner is started by an agent, with a socket as its standard input")]
    NoKeeper(#[source] io::Error),
    /// The socket to the keeper failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The sandbox cannot be built on this host.
    #[error("the sandbox cannot be set up")]
    Sandbox(#[from] periapt_sandbox::SandboxError),
    /// The controller refuses the runner.
    #[error("the controller refuses this runner: {0}")]
    Refused(periapt_host_api::Refusal),
    /// Another runner of the same model has attached to this agent's units.
    #[error("another runner looks after these units: does a second agent use this agent's name?")]
    Revoked,
}

/// The state that all parts of a runner share.
struct RunnerContext {
    start: Start,
    incarnation: Incarnation,
    /// The engine's name and version, for the journal.
    engine: Arc<str>,
    link: Link,
    mirror: Mirror,
    leases: Arc<LeaseBook>,
    sandbox: Sandbox,
    charms: PreparedCharms,
    fetch: Fetch,
    storages: Storages,
    hooks: Admission,
    groups: Groups,
    workloads: Workloads,
}

/// Runs a runner in this process, with the keeper's socket as its standard input. `paths` is the last argument of the
/// command line. The process must have no other threads yet.
pub fn run_runner(paths: &str) -> ExitCode {
    match run(paths) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::error!(%error, source, "the runner ended");
            ExitCode::FAILURE
        }
    }
}

fn run(paths: &str) -> Result<(), RunnerError> {
    let paths: RunnerPaths = serde_json::from_str(paths).map_err(RunnerError::Paths)?;
    // The keeper's end of the socket also closes with it. This signal ends even a runner that is too busy to notice.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| RunnerError::NoKeeper(error.into()))?;
    forbid_core_dumps().map_err(|error| RunnerError::NoKeeper(error.into()))?;
    let resident = Resident::open();
    for gap in Fence::Runner(&paths).raise() {
        tracing::debug!(%gap, "the runner lacks a part of the system's sandbox");
    }
    // The thread of this function starts behind the fence, like all later ones.
    give_back_what_is_freed(resident);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(RunnerError::NoKeeper)?;
    let ended = runtime.block_on(async {
        let socket = inherited_socket().map_err(RunnerError::NoKeeper)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(RunnerError::NoKeeper)?;
        serve(socket, async move {
            terminate.recv().await;
        })
        .await
    });
    // A computing hook yields rarely, so the shutdown does not wait for it.
    runtime.shutdown_background();
    ended
}

fn inherited_socket() -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.peer_addr()?;
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Serves one keeper until it requests the end or is gone, or until `terminate`.
pub(crate) async fn serve(
    socket: UnixStream,
    terminate: impl Future<Output = ()>,
) -> Result<(), RunnerError> {
    let (mut incoming, outgoing) = split(socket, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT);
    let Some((ToRunner::Start(start), _)) = incoming.next().await? else { return Ok(()) };
    let mut tasks = JoinSet::new();
    let (link, writer) = Link::new(outgoing);
    tasks.spawn(async move {
        writer.await;
        Ok(())
    });
    let mirror = Mirror::default();
    let leases = Arc::new(LeaseBook::default());
    leases.replace(start.grants.clone());
    let workloads = Workloads::default();
    workloads.replace(start.workloads.clone());
    let sandbox = Arc::new(OnceLock::new());
    let ended = {
        let (link, mirror, leases) = (link.clone(), mirror.clone(), Arc::clone(&leases));
        let workloads = workloads.clone();
        tasks.spawn(alive(link.clone(), Arc::clone(&sandbox)));
        tasks.spawn(pass_spans(link.clone()));
        listen(incoming, link, mirror, leases, workloads)
    };
    let beside = (leases, workloads);
    tasks.spawn(look_after(*start, link.clone(), mirror, beside, sandbox));
    let result = tokio::select! {
        ended = ended => ended,
        Some(task) = tasks.join_next() => match task {
            Ok(result) => result,
            // A panic is a defect of the runner, not of a hook.
            Err(error) => Err(RunnerError::NoKeeper(io::Error::other(error))),
        },
        // Hooks in flight are abandoned without suspicion (U-13): the keeper gets word of an orderly end.
        () = terminate => {
            link.last_words(ToKeeper::Ending { reason: "it was told to by a signal".to_owned() }).await;
            return Ok(());
        }
    };
    if let Err(error) = &result {
        link.last_words(ToKeeper::Ending { reason: error.to_string() }).await;
    }
    result
}

/// Reads the keeper's messages.
async fn listen(
    mut incoming: Incoming<ToRunner>,
    link: Link,
    mirror: Mirror,
    leases: Arc<LeaseBook>,
    workloads: Workloads,
) -> Result<(), RunnerError> {
    let mut lines = FrameLines::default();
    loop {
        match incoming.next().await? {
            None | Some((ToRunner::Exit, _)) => return Ok(()),
            Some((ToRunner::Frame(line), _)) => {
                let applied = match lines.take(*line) {
                    Ok(Some(frame)) => mirror.apply(frame).map_err(|gap| gap.to_string()),
                    Ok(None) => Ok(()),
                    Err(lost) => Err(lost.to_string()),
                };
                if let Err(gap) = applied {
                    tracing::warn!(%gap, "asking for the whole view");
                    link.send(ToKeeper::Resync).await;
                }
            }
            Some((ToRunner::Answer { id, outcome }, _)) => link.answered(id, outcome),
            Some((ToRunner::Grants(grants), _)) => leases.replace(grants),
            Some((ToRunner::Workloads(told), _)) => workloads.replace(told),
            Some((ToRunner::WorkloadsChanged(told), _)) => workloads.update(told),
            Some((ToRunner::Notices(told), _)) => workloads.add(told, &mirror.view()),
            Some((ToRunner::Start(_), _)) => {}
        }
    }
}

/// Tells the keeper every few seconds that the runner lives. `sandbox` is set once it is made.
async fn alive(link: Link, sandbox: Arc<OnceLock<Sandbox>>) -> Result<(), RunnerError> {
    loop {
        let pool = sandbox.get().map(Sandbox::pool_statistics).unwrap_or_default();
        link.send(ToKeeper::Alive(pool.into())).await;
        sleep(RUNNER_ALIVE_EVERY).await;
    }
}

/// Passes the spans of this process to the keeper, which has a network.
async fn pass_spans(link: Link) -> Result<(), RunnerError> {
    loop {
        let mut records = export::next_records().await.into_iter().peekable();
        while records.peek().is_some() {
            link.send(ToKeeper::Spans(records.by_ref().take(SPANS_AT_A_TIME).collect())).await;
        }
    }
}

/// Attaches, waits for the view, and runs the units.
async fn look_after(
    start: Start,
    link: Link,
    mirror: Mirror,
    (leases, workloads): (Arc<LeaseBook>, Workloads),
    made: Arc<OnceLock<Sandbox>>,
) -> Result<(), RunnerError> {
    let sandbox = Sandbox::new(periapt_sandbox::Options {
        hooks_in_flight: u32::try_from(start.hooks).unwrap_or(u32::MAX),
        ..periapt_sandbox::Options::default()
    })?;
    // Nobody else sets it.
    let _ = made.set(sandbox.clone());
    let charms = PreparedCharms::new(sandbox.clone(), link.clone());
    let fetch = Fetch::new(link.clone());
    let incarnation = attach(&link).await?;
    mirror.filled().await;
    let hooks = Admission::new(start.hooks, start.hook_memory_mib);
    let groups = Groups::default();
    let storages = Storages::new(start.storage.clone());
    let runner = Arc::new(RunnerContext {
        start,
        incarnation,
        engine: periapt_sandbox::engine_version().into(),
        link,
        mirror,
        leases,
        sandbox,
        charms,
        fetch,
        storages,
        hooks,
        groups,
        workloads,
    });
    let storage = storage::run(Arc::clone(&runner));
    let units = units::run(Arc::clone(&runner));
    tokio::select! {
        ended = storage => ended,
        ended = units => ended,
        () = runner.charms.release_idle() => Ok(()),
    }
}

async fn attach(link: &Link) -> Result<Incarnation, RunnerError> {
    let mut backoff = Backoff::network();
    loop {
        match link.call(Call::Command(Box::new(RunnerCommand::Attach))).await {
            CallOutcome::Answered { answer: RunnerAnswer::Attached { incarnation }, .. } => {
                return Ok(incarnation);
            }
            CallOutcome::Refused(refusal) => return Err(RunnerError::Refused(refusal)),
            _ => sleep(backoff.failed()).await,
        }
    }
}
