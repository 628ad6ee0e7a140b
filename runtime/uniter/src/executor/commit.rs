//! The sending of one commit until its outcome is known.
//!
//! While the controller is away, the executor repeats the commit. A commit has its effect once, however often it
//! arrives. A repeat gets the same answer, or is stale once the unit has advanced. The last commit of a unit removes
//! the unit, so a repeat is refused like a commit for another agent's unit.

use std::time::Duration;

use periapt_host_api::{
    ErrorCode, LeaderTerm, Refusal, TaskId,
    commit::{HookEffects, UnitCommit},
    journal::{HookOutcome, JournalRecord},
    usage::Usage,
    view::View,
};

use super::{
    Executor, ExecutorCommand, Phase, SendOutcome, Step,
    settle::{Awaited, Then},
};
use crate::{ActionEnd, Backoff, HookEnd, HookRun, Jitter, Progress};

/// Returns the waits of a unit whose commits are refused, while its view does not change.
pub(super) fn refusals() -> Backoff {
    Backoff::new(Duration::from_millis(200), Duration::from_secs(30))
}

/// The subject of a commit.
#[derive(Debug, Clone)]
pub(super) enum CommitSubject {
    /// The end of a hook.
    Hook { run: Box<HookRun>, end: HookEnd, jitter: Jitter },
    /// The end of an action.
    Action { run: Box<HookRun>, task: TaskId, end: ActionEnd },
    /// The failure of an action whose end was refused.
    RefusedAction,
    /// The start of a hook, decided on this view.
    BeginHook { view: Box<View>, run: Box<HookRun> },
    /// The start of an action.
    BeginAction(Box<HookRun>),
    /// A step without a run.
    Bookkeeping,
}

/// The parts of a run that its commit contains.
#[derive(Debug, Clone, Default)]
pub(super) struct CommittedParts {
    pub(super) effects: HookEffects,
    pub(super) leader_term: Option<LeaderTerm>,
    pub(super) journal: Option<JournalRecord>,
}

impl CommittedParts {
    /// Returns the parts for a run that failed after all: its journal record alone.
    pub(super) fn failed(self, message: &str) -> Self {
        let outcome = HookOutcome::Failed { message: message.to_owned() };
        let journal = self.journal.map(|record| JournalRecord { outcome, ..record });
        Self { journal, ..Self::default() }
    }
}

/// A commit without an answer.
#[derive(Debug, Clone)]
pub(super) struct Committing {
    commit: UnitCommit,
    subject: CommitSubject,
    sending: Sending,
    backoff: Backoff,
    /// True if an earlier attempt had an unknown outcome.
    sent_again: bool,
    /// True if the view came from another store meanwhile, which need not contain the commit that is answered.
    store_replaced: bool,
}

/// The progress of sending a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// Early effects are sent before it.
    AfterEarly,
    /// The commit is in flight.
    Sent,
    /// An attempt failed. The next one is at this time.
    Again(Duration),
}

impl Committing {
    /// Returns whether the commit reports the end of a run.
    pub(super) fn is_of_a_run(&self) -> bool {
        matches!(
            self.subject,
            CommitSubject::Hook { .. } | CommitSubject::Action { .. } | CommitSubject::RefusedAction
        )
    }

    pub(super) fn store_replaced(&mut self) {
        self.store_replaced = true;
    }

    pub(super) fn sends_again_at(&self) -> Option<Duration> {
        match self.sending {
            Sending::Again(at) => Some(at),
            Sending::AfterEarly | Sending::Sent => None,
        }
    }
}

impl Executor {
    /// Commits a step from a record with this `seq`, with the items in the outbox.
    pub(super) fn commit(
        &mut self,
        seq: u64,
        progress: &Progress,
        parts: CommittedParts,
        subject: CommitSubject,
        step: &mut Step<'_>,
    ) {
        let CommittedParts { mut effects, leader_term, journal } = parts;
        // Delays count from here, on the clock on which the unit waits for them.
        effects.events.asked_at(step.now.timer);
        let commit = UnitCommit {
            unit: self.unit.clone(),
            seq,
            incarnation: self.incarnation,
            record: progress.record.clone(),
            effects,
            transitions: progress.transitions.clone(),
            leader_term,
            early: Vec::new(),
            journal,
            uncommitted_usage: self.uncommitted,
        };
        self.phase = Phase::Committing(Box::new(Committing {
            commit,
            subject,
            sending: Sending::AfterEarly,
            backoff: Backoff::network(),
            sent_again: false,
            store_replaced: false,
        }));
        self.send_commit(step);
    }

    /// Sends the commit once all earlier items are sent. It includes the last batch of them.
    pub(super) fn send_commit(&mut self, step: &mut Step<'_>) {
        let Phase::Committing(committing) = &mut self.phase else { return };
        if committing.sending != Sending::AfterEarly {
            return;
        }
        let Some(last) = self.outbox.take(step) else { return };
        committing.commit.early = last;
        committing.sending = Sending::Sent;
        step.command(ExecutorCommand::Commit(Box::new(committing.commit.clone())));
    }

    pub(super) fn send_commit_again(&mut self, step: &mut Step<'_>) {
        let Phase::Committing(committing) = &mut self.phase else { return };
        if matches!(committing.sending, Sending::Again(at) if at <= step.now.steady) {
            committing.sending = Sending::Sent;
            step.command(ExecutorCommand::Commit(Box::new(committing.commit.clone())));
        }
    }

    /// Handles the controller's answer, or its absence.
    pub(super) fn commit_answered(&mut self, answer: SendOutcome, step: &mut Step<'_>) {
        let Phase::Committing(committing) = &mut self.phase else { return };
        if committing.sending != Sending::Sent {
            return;
        }
        let refusal = match answer {
            SendOutcome::Unreachable => {
                let wait = committing.backoff.failed();
                committing.sending = Sending::Again(step.now.steady.saturating_add(wait));
                committing.sent_again = true;
                return;
            }
            SendOutcome::Accepted => None,
            SendOutcome::Refused(refusal) => Some(refusal),
        };
        let Phase::Committing(committing) =
            std::mem::replace(&mut self.phase, Phase::Resting { wake_at: None })
        else {
            return;
        };
        match refusal {
            None => self.accepted(*committing, step),
            Some(refusal) => self.not_accepted(*committing, refusal, step),
        }
    }

    fn accepted(&mut self, accepted: Committing, step: &mut Step<'_>) {
        let Committing { commit, subject, store_replaced, .. } = accepted;
        self.refusals.succeeded();
        self.uncommitted = Usage::default();
        let then = match subject {
            CommitSubject::BeginHook { view, run } => Then::RunHook { view, run },
            CommitSubject::BeginAction(run) => Then::RunAction(run),
            _ => Then::Decide,
        };
        // The unit's next decision must see its own last commit (`docs/design/commit.md`).
        let awaited = match store_replaced {
            false => Awaited::Reached { seq: commit.record.seq, until: None },
            true => Awaited::reached_if_shown(commit.record.seq, step.now),
        };
        self.await_view(awaited, then, step);
    }

    fn not_accepted(&mut self, refused: Committing, refusal: Refusal, step: &mut Step<'_>) {
        let Committing { commit, subject, sent_again, .. } = refused;
        let UnitCommit { seq, record, transitions, effects, leader_term, early, journal, .. } = commit;
        match refusal.code {
            ErrorCode::Stale => {
                self.outbox.put_back(early, step);
                self.await_view(Awaited::moved(seq, step.now), Then::Decide, step);
            }
            ErrorCode::CharmReplaced => {
                self.outbox.put_back(early, step);
                self.await_view(Awaited::Replaced { charm: record.charm }, Then::Decide, step);
            }
            ErrorCode::PermissionDenied if sent_again && transitions.terminate => {
                self.await_view(Awaited::gone(early, step.now), Then::Decide, step);
            }
            _ => {
                self.outbox.put_back(early, step);
                let parts = CommittedParts { effects, leader_term, journal };
                if !self.end_was_refused(subject, parts, &refusal.message, step) {
                    self.hold_up(step);
                }
            }
        }
    }

    /// Drops a refused commit: the cause is on its way in the stream.
    pub(super) fn hold_up(&mut self, step: &mut Step<'_>) {
        self.end_operation(step);
        if self.trial_ends(step) {
            return;
        }
        let wait = self.refusals.failed();
        self.phase = Phase::Refused { until: step.now.steady.saturating_add(wait) };
    }
}
