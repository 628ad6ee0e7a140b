//! Sends one commit until it is known what became of it.
//!
//! While the controller is away the same is sent again. However often it arrives, it happens once; sent again, it is
//! answered as it was, or as stale once the unit has moved on. The last commit of a unit takes the unit away: sent again,
//! it is refused like a commit of another agent's unit.

use std::time::Duration;

use periapt_host_api::{ErrorCode, Refusal, TaskId, commit::UnitCommit, usage::Usage, view::View};

use super::{
    Executor, ExecutorCommand, Phase, SendOutcome, Step,
    report::Kept,
    settle::{Awaited, Then},
};
use crate::{ActionEnd, Backoff, HookEnd, HookRun, Jitter, Progress};

/// The waits of a unit whose commits are refused one after the other, if its view stays as it is.
pub(super) fn refusals() -> Backoff {
    Backoff::new(Duration::from_millis(200), Duration::from_secs(30))
}

/// What a commit is about.
#[derive(Debug, Clone)]
pub(super) enum About {
    /// How a hook ended.
    Hook { run: Box<HookRun>, end: HookEnd, jitter: Jitter },
    /// How an action ended.
    Action { run: Box<HookRun>, task: TaskId, end: ActionEnd },
    /// That an action failed, as its end was refused.
    RefusedAction,
    /// That a hook is about to run, on this view.
    BeginHook { view: Box<View>, run: Box<HookRun> },
    /// That an action is about to run.
    BeginAction(Box<HookRun>),
    /// Something without a run.
    Bookkeeping,
}

/// A commit that has no answer yet.
#[derive(Debug, Clone)]
pub(super) struct Committing {
    commit: UnitCommit,
    about: About,
    sending: Sending,
    backoff: Backoff,
    /// It was sent before, and nobody knows what became of it then.
    sent_again: bool,
}

/// How far a commit is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// What left hooks early goes before it.
    AfterEarly,
    /// It is sent, and not answered.
    Sent,
    /// It was sent in vain, and is sent again then.
    Again(Duration),
}

impl Committing {
    /// Returns whether the commit reports the end of a run.
    pub(super) fn is_of_a_run(&self) -> bool {
        matches!(self.about, About::Hook { .. } | About::Action { .. } | About::RefusedAction)
    }

    pub(super) fn sends_again_at(&self) -> Option<Duration> {
        match self.sending {
            Sending::Again(at) => Some(at),
            Sending::AfterEarly | Sending::Sent => None,
        }
    }
}

impl Executor {
    /// Commits progress that started from a record with this `seq`, with what waits in the outbox.
    pub(super) fn commit(
        &mut self,
        seq: u64,
        progress: &Progress,
        kept: Kept,
        about: About,
        step: &mut Step<'_>,
    ) {
        let Kept { mut effects, leader_term, journal } = kept;
        // Their times are counted from here, by the clock that they are waited for with.
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
            about,
            sending: Sending::AfterEarly,
            backoff: Backoff::network(),
            sent_again: false,
        }));
        self.send_commit(step);
    }

    /// Sends the commit once all that is to go before it was sent. The last of that goes along.
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

    /// The controller answered, or did not.
    pub(super) fn commit_answered(&mut self, answer: SendOutcome, step: &mut Step<'_>) {
        let Phase::Committing(committing) = &mut self.phase else { return };
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
        let Committing { commit, about, sent_again, .. } = *committing;
        match refusal {
            None => self.accepted(&commit, about, step),
            Some(refusal) => self.not_accepted(commit, about, refusal, sent_again, step),
        }
    }

    fn accepted(&mut self, commit: &UnitCommit, about: About, step: &mut Step<'_>) {
        self.refusals.succeeded();
        self.uncommitted = Usage::default();
        let then = match about {
            About::BeginHook { view, run } => Then::RunHook { view, run },
            About::BeginAction(run) => Then::RunAction(run),
            _ => Then::Look,
        };
        // A unit sees its own last commit (`docs/design/commit.md`).
        self.await_view(Awaited::Reached { seq: commit.record.seq }, then, step);
    }

    fn not_accepted(
        &mut self,
        commit: UnitCommit,
        about: About,
        refusal: Refusal,
        sent_again: bool,
        step: &mut Step<'_>,
    ) {
        let UnitCommit { seq, record, transitions, effects, leader_term, early, journal, .. } = commit;
        match refusal.code {
            ErrorCode::Stale => {
                self.outbox.put_back(early, step);
                self.await_view(Awaited::moved(seq, step.now), Then::Look, step);
            }
            ErrorCode::CharmReplaced => {
                self.outbox.put_back(early, step);
                self.await_view(Awaited::Replaced { charm: record.charm }, Then::Look, step);
            }
            ErrorCode::PermissionDenied if sent_again && transitions.terminate => {
                self.await_view(Awaited::gone(early, step.now), Then::Look, step);
            }
            _ => {
                self.outbox.put_back(early, step);
                let kept = Kept { effects, leader_term, journal };
                if !self.end_was_refused(about, kept, &refusal.message, step) {
                    self.hold_up(step);
                }
            }
        }
    }

    /// A refused commit is dropped: what made the controller refuse it is on its way in the stream.
    pub(super) fn hold_up(&mut self, step: &mut Step<'_>) {
        self.end_operation(step);
        if self.trial_ends(step) {
            return;
        }
        let wait = self.refusals.failed();
        self.phase = Phase::Refused { until: step.now.steady.saturating_add(wait) };
    }
}
