//! One commit of one unit, sent until it is known what became of it.

use std::time::Duration;

use periapt_host_api::{
    ErrorCode, LeaderTerm, Refusal, UnitName,
    agent::RunnerCommand,
    commit::{HookEffects, UnitCommit},
    journal::JournalRecord,
    record::CharmRef,
    usage::Usage,
    view::View,
};
use periapt_uniter::Progress;
use tokio::time::{sleep, timeout};

use super::{RunnerError, World, outbox::Outbox};
use crate::{
    backoff::Backoff,
    protocol::{Call, CallOutcome},
};

/// How long the stream may take to tell why a commit was stale.
const STALE_WITHIN: Duration = Duration::from_secs(15);

/// What goes with a unit's progress.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// What the charm asked for.
    pub(crate) effects: HookEffects,
    /// The leadership that this rests on.
    pub(crate) leader_term: Option<LeaderTerm>,
    /// The run's record.
    pub(crate) journal: Option<JournalRecord>,
    /// What hooks before it used that had nothing to commit.
    pub(crate) uncommitted_usage: Usage,
}

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum Committed {
    /// It happened, and the mirror shows it.
    Done,
    /// It does not follow the unit's last commit; the mirror shows that one now.
    Stale,
    /// It brings a charm that was replaced meanwhile; the mirror shows the other one now.
    Replaced,
    /// Nothing of it happened.
    Refused(Refusal),
}

/// Commits progress that started from a record with this `seq`, with what waits in the outbox.
///
/// While the controller is away the same is sent again. However often it arrives, it happens once; sent again, it is
/// answered as it was, or as stale once the unit has moved on. The last commit of a unit takes the unit away: sent again,
/// it is refused like a commit of another agent's unit.
pub(crate) async fn commit(
    world: &World,
    unit: &UnitName,
    outbox: &Outbox,
    seq: u64,
    progress: &Progress,
    outcome: Outcome,
) -> Result<Committed, RunnerError> {
    let sender = outbox.sender().await;
    let early = sender.take().await;
    let commit = UnitCommit {
        unit: unit.clone(),
        seq,
        incarnation: world.incarnation,
        record: progress.record.clone(),
        effects: outcome.effects,
        transitions: progress.transitions.clone(),
        leader_term: outcome.leader_term,
        early: early.clone(),
        journal: outcome.journal,
        uncommitted_usage: outcome.uncommitted_usage,
    };
    let Delivered { answer, sent_again } = deliver(world, commit).await;
    match answer {
        Ok(()) => {
            drop(sender);
            // A unit sees its own last commit (design.md section 3, item 4).
            world.mirror.wait_for(|view| has_reached(view, unit, progress.record.seq)).await;
            Ok(Committed::Done)
        }
        Err(refusal) if refusal.code == ErrorCode::Stale => {
            sender.put_back(early);
            drop(sender);
            tracing::info!(%unit, seq, "a commit was stale");
            let moved = world.mirror.wait_for(|view| !is_at(view, unit, seq));
            match timeout(STALE_WITHIN, moved).await {
                Ok(()) => Ok(Committed::Stale),
                // The record is where it was: it is this runner that is not the unit's any more.
                Err(_) => Err(RunnerError::Revoked),
            }
        }
        Err(refusal) if refusal.code == ErrorCode::CharmReplaced => {
            sender.put_back(early);
            drop(sender);
            tracing::info!(%unit, seq, %refusal, "a charm was replaced before it was in place");
            // No time-out: the frame that tells of it is on its way, for the stream has never been wrong; should the
            // connection be lost, it comes with the next one.
            let charm = progress.record.charm;
            world.mirror.wait_for(|view| !is_wanted(view, unit, charm)).await;
            Ok(Committed::Replaced)
        }
        Err(refusal)
            if sent_again
                && progress.transitions.terminate
                && refusal.code == ErrorCode::PermissionDenied
                && is_gone_soon(world, unit).await =>
        {
            tracing::debug!(%unit, "a unit was gone before the answer to its last commit came");
            Ok(Committed::Done)
        }
        Err(refusal) => {
            sender.put_back(early);
            Ok(Committed::Refused(refusal))
        }
    }
}

/// The answer to a commit.
struct Delivered {
    answer: Result<(), Refusal>,
    /// It was sent before, and nobody knows what became of it then.
    sent_again: bool,
}

async fn deliver(world: &World, commit: UnitCommit) -> Delivered {
    let command = Box::new(RunnerCommand::Commit(Box::new(commit)));
    let (mut backoff, mut sent_again) = (Backoff::network(), false);
    loop {
        match world.link.call(Call::Command(command.clone())).await {
            CallOutcome::Answered { .. } => return Delivered { answer: Ok(()), sent_again },
            CallOutcome::Refused(refusal) => return Delivered { answer: Err(refusal), sent_again },
            CallOutcome::Away { message } => {
                let wait = backoff.failed();
                tracing::debug!(message, ?wait, "a commit has no answer yet");
                sleep(wait).await;
                sent_again = true;
            }
            CallOutcome::Charm(_) | CallOutcome::Secret(_) | CallOutcome::Resource(_) => {
                sleep(backoff.failed()).await
            }
        }
    }
}

/// Waits for the frame that takes a unit away.
async fn is_gone_soon(world: &World, unit: &UnitName) -> bool {
    let gone = world.mirror.wait_for(|view| !view.units.contains_key(unit));
    timeout(STALE_WITHIN, gone).await.is_ok()
}

fn has_reached(view: &View, unit: &UnitName, seq: u64) -> bool {
    view.units.get(unit).is_none_or(|unit| unit.record.seq >= seq)
}

/// Whether a view still says that a unit is to run a charm. Coming back to the same archive is another modified
/// version, so that this ends however many changes one frame tells of.
fn is_wanted(view: &View, unit: &UnitName, charm: Option<CharmRef>) -> bool {
    let application = view.units.get(unit).and_then(|unit| view.applications.get(unit.name.application()));
    application.is_some_and(|application| Some(application.charm) == charm)
}

fn is_at(view: &View, unit: &UnitName, seq: u64) -> bool {
    view.units.get(unit).is_some_and(|unit| unit.record.seq == seq)
}
