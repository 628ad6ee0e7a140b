//! The parts of a running controller that need no connection.

use std::{future::Future, pin::Pin, sync::Arc};

use periapt_program::Programs;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    migration::Migrations,
    pruning::{Pruner, SequenceGrowth},
    replacement::Replacement,
    replication::{LevelRaise, RoleReceiver, Trimming, while_leading},
    state::ControllerState,
    sums::write_sums,
    supervision::{Supervisor, Worker},
    workers::Workers,
};

/// Keeps secrets in this process: out of core dumps, and its open files from helpers. Logs the parts of helpers'
/// isolation that this host lacks.
pub(super) fn guard_secrets() {
    if let Err(error) = periapt_helper::forbid_core_dumps() {
        tracing::warn!(%error, "a core dump of this process would contain secrets");
    }
    if let Err(error) = periapt_helper::keep_descriptors() {
        tracing::warn!(%error, "inherited descriptors pass on to helpers");
    }
    match periapt_helper::gaps() {
        Ok(gaps) => {
            for gap in gaps {
                let (part, reason) = (gap.part, gap.reason);
                tracing::warn!(part, reason, "charms are checked without a part of the system's sandbox");
            }
        }
        Err(error) => {
            tracing::warn!(%error, "cannot tell which parts of the system's sandbox this host offers")
        }
    }
}

/// Returns the replacement of the controller's program.
pub(super) fn replacement(
    programs: Programs,
    state: &ControllerState,
    stop: CancellationToken,
) -> Replacement {
    Replacement {
        programs,
        members: state.members.clone(),
        role: state.role.clone(),
        commands: state.submission.commands.clone(),
        contents: state.resources.contents.clone(),
        stop,
    }
}

/// The future of a worker.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Starts the background work. A worker that fails is started again; the delivery to watchers is part of serving them.
/// One of several controllers has a log to trim.
pub(super) fn start_parts(
    parts: &mut JoinSet<()>,
    state: &ControllerState,
    growth: SequenceGrowth,
    trimming: Option<Trimming>,
    stop: &CancellationToken,
) {
    parts.spawn(state.streams.watches.clone().run(state.durable.state.clone(), stop.clone()));
    let (health, clock) = (state.statuses.workers.clone(), Arc::clone(&state.clock));
    let supervisor = Supervisor { health, clock, stop: stop.clone() };
    for worker in Worker::ALL {
        if matches!(worker, Worker::Sync | Worker::Trimming) && trimming.is_none() {
            continue;
        }
        let (state, growth, trimming, stop) = (state.clone(), growth.clone(), trimming.clone(), stop.clone());
        let start = move || {
            let work = run(worker, state.clone(), growth.clone(), trimming.clone(), stop.clone());
            state.statuses.workers.clone().started(worker, work)
        };
        parts.spawn(supervisor.clone().keep(worker, start));
    }
}

/// Runs a worker.
fn run(
    worker: Worker,
    state: ControllerState,
    growth: SequenceGrowth,
    trimming: Option<Trimming>,
    stop: CancellationToken,
) -> Work {
    match worker {
        Worker::Agents => Box::pin(tell_connected_agents(state, stop)),
        Worker::Audit => Box::pin(write_refusals(state, stop)),
        Worker::Level => Box::pin(raise_level(state, stop)),
        Worker::Work => Box::pin(work(state, stop)),
        Worker::Migrations => Box::pin(migrate(state, stop)),
        Worker::Copies => Box::pin(fetch_blobs(state, stop)),
        Worker::Sync => Box::pin(sync(state, stop)),
        Worker::Trimming => Box::pin(trim(trimming, state.role.clone(), stop)),
        Worker::Pruning => Box::pin(Pruner::new(&state, growth, stop).run()),
    }
}

/// Tells the model which agents are connected, while this controller leads.
async fn tell_connected_agents(state: ControllerState, stop: CancellationToken) {
    let (presence, commands) = (state.streams.presence.clone(), state.submission.commands.clone());
    let published = state.durable.state.clone();
    let tell = move |_, until| presence.clone().run(commands.clone(), published.clone(), until);
    while_leading(state.role.clone(), stop, tell).await;
}

/// Writes the sums of refused requests into the audit log.
async fn write_refusals(state: ControllerState, stop: CancellationToken) {
    write_sums(state.refusals.clone(), state.submission.commands.clone(), Arc::clone(&state.clock), stop)
        .await;
}

/// Raises the level of what is stored, while this controller leads.
async fn raise_level(state: ControllerState, stop: CancellationToken) {
    let raise = LevelRaise {
        commands: state.submission.commands.clone(),
        state: state.durable.state.clone(),
        members: state.members.clone(),
        clock: Arc::clone(&state.clock),
    };
    while_leading(state.role.clone(), stop, move |_, until| raise.clone().run(until)).await;
}

/// Does what the model says is due, while this controller leads.
async fn work(state: ControllerState, stop: CancellationToken) {
    let (commands, published) = (state.submission.commands.clone(), state.durable.state.clone());
    let workers = Workers { commands, state: published, clock: Arc::clone(&state.clock) };
    while_leading(state.role.clone(), stop, move |_, until| workers.clone().run(until)).await;
}

/// Carries models to other controllers, while this controller leads.
async fn migrate(state: ControllerState, stop: CancellationToken) {
    let (role, migrations) = (state.role.clone(), Migrations::new(state));
    while_leading(role, stop, move |_, until| migrations.clone().run(until)).await;
}

/// Fetches registered blobs that this controller lacks.
async fn fetch_blobs(state: ControllerState, stop: CancellationToken) {
    let copies = state.charms.contents.copies.clone();
    copies.keep_up(vec![state.charms.contents.clone(), state.resources.contents.clone()], stop).await;
}

/// Syncs the store of one of several controllers.
async fn sync(state: ControllerState, stop: CancellationToken) {
    let (published, store) = (state.durable.state.clone(), state.durable.store.clone());
    state.log_position.clone().keep(published, store, Arc::clone(&state.clock), stop).await;
}

/// Trims the log of several controllers, while this one leads.
async fn trim(trimming: Option<Trimming>, role: RoleReceiver, stop: CancellationToken) {
    let Some(trimming) = trimming else { return stop.cancelled().await };
    while_leading(role, stop, move |term, until| trimming.clone().run(term, until)).await;
}
