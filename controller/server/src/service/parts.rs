//! The parts of a running controller that need no connection.

use std::{future::Future, sync::Arc};

use periapt_program::Programs;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    pruning::{Pruner, SequenceGrowth},
    published::Subscription,
    replacement::Replacement,
    replication::{LevelRaise, while_leading},
    state::ControllerState,
    sums::write_sums,
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

/// Starts the background work.
pub(super) fn start_parts(
    parts: &mut JoinSet<()>,
    state: &ControllerState,
    growth: SequenceGrowth,
    stop: &CancellationToken,
) {
    let published = || -> Subscription { state.durable.state.clone() };
    let mut start = |part: std::pin::Pin<Box<dyn Future<Output = ()> + Send>>| {
        parts.spawn(part);
    };
    let (commands, streams) = (state.submission.commands.clone(), state.streams.clone());
    let (presence, commands_of, state_of) = (streams.presence, commands.clone(), published());
    let telling = while_leading(state.role.clone(), stop.clone(), move |until| {
        presence.clone().run(commands_of.clone(), state_of.clone(), until)
    });
    start(Box::pin(telling));
    let refusals = state.refusals.clone();
    start(Box::pin(write_sums(refusals, commands.clone(), Arc::clone(&state.clock), stop.clone())));
    start(Box::pin(streams.watches.run(published(), stop.clone())));
    let raise = LevelRaise {
        commands: commands.clone(),
        state: published(),
        members: state.members.clone(),
        clock: Arc::clone(&state.clock),
    };
    let raising = while_leading(state.role.clone(), stop.clone(), move |until| raise.clone().run(until));
    start(Box::pin(raising));
    let workers = Workers { commands, state: published(), clock: Arc::clone(&state.clock) };
    let working = while_leading(state.role.clone(), stop.clone(), move |until| workers.clone().run(until));
    start(Box::pin(working));
    let all = vec![state.charms.contents.clone(), state.resources.contents.clone()];
    start(Box::pin(state.charms.contents.copies.clone().keep_up(all, stop.clone())));
    if state.charms.contents.copies.are_made() {
        let position = state.log_position.clone();
        let (published, store) = (state.durable.state.clone(), state.durable.store.clone());
        let syncing = position.keep(published, store, Arc::clone(&state.clock), stop.clone());
        start(Box::pin(syncing));
    }
    start(Box::pin(Pruner::new(state.clone(), growth).run(stop.clone())));
}
