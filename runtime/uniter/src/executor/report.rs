//! What a driver tells of a run that came to an end.

use periapt_host_api::{
    Digest, LeaderTerm, Timestamp,
    action::TaskResults,
    commit::HookEffects,
    journal::{HookCosts, HookOutcome, JournalRecord, RecordedCalls},
};

use crate::{ActionEnd, HookEnd, HookRun};

/// How a handler came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// It returned ok.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// It failed, trapped, ran out of a budget, or could not be run.
    Failed {
        /// As a process's exit code; not 0.
        code: i32,
        /// Why, in its own words or the sandbox's; may be empty.
        message: String,
    },
    /// A tool that an operator ran came to its end: its exit code is a result and no failure, and what it asked for is
    /// committed whatever it is (C-9).
    Exited {
        /// As a process's exit code.
        code: i32,
    },
    /// It was stopped, because an operator cancelled the task.
    Stopped,
}

/// A run that came to an end, as its driver saw it. What left it early was said before.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// How the handler came back.
    pub returned: Returned,
    /// When it began.
    pub started_at: Timestamp,
    /// Whether the charm called status-set for its unit.
    pub status_set: bool,
    /// What the charm asked for.
    pub effects: HookEffects,
    /// The leadership that this rests on.
    pub leader_term: Option<LeaderTerm>,
    /// Of an action: its results, without the return code.
    pub results: TaskResults,
    /// Of an action: what it said of its own failure.
    pub said_failed: Option<String>,
    /// The component that ran; none if the charm could not be loaded.
    pub component: Option<Digest>,
    /// What it cost.
    pub costs: HookCosts,
    /// Its calls to the host.
    pub calls: RecordedCalls,
    /// Where its randomness came from, in hexadecimal digits.
    pub seed: String,
}

impl RunReport {
    /// A run that ended so, and left nothing.
    pub fn of(returned: Returned, started_at: Timestamp) -> Self {
        Self {
            returned,
            started_at,
            status_set: false,
            effects: HookEffects::default(),
            leader_term: None,
            results: TaskResults::default(),
            said_failed: None,
            component: None,
            costs: HookCosts::default(),
            calls: RecordedCalls::default(),
            seed: String::new(),
        }
    }

    /// A run that failed, or that could not be made.
    pub fn failed(message: String, started_at: Timestamp) -> Self {
        Self::of(Returned::Failed { code: 1, message }, started_at)
    }
}

/// What of a run goes with the unit's next record.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) effects: HookEffects,
    pub(super) leader_term: Option<LeaderTerm>,
    pub(super) journal: Option<JournalRecord>,
}

impl Kept {
    /// The same of a run that failed after all: its record alone.
    pub(super) fn failed(self, message: &str) -> Self {
        let outcome = HookOutcome::Failed { message: message.to_owned() };
        let journal = self.journal.map(|record| JournalRecord { outcome, ..record });
        Self { journal, ..Self::default() }
    }
}

impl RunReport {
    /// How a hook ended, and what is kept of it: of one that failed, its record alone.
    pub(super) fn of_hook(self, run: &HookRun, engine: &str) -> (HookEnd, Kept) {
        let status_set = self.status_set;
        let (end, outcome) = match &self.returned {
            Returned::Handled | Returned::Exited { .. } => {
                (HookEnd::Handled { status_set }, HookOutcome::Handled)
            }
            Returned::Unhandled => (HookEnd::Unhandled { status_set }, HookOutcome::Unhandled),
            Returned::Failed { message, .. } => failed(message.clone(), status_set),
            Returned::Stopped => failed("it was stopped".to_owned(), status_set),
        };
        let kept = self.kept(run, engine, outcome);
        (end, kept)
    }

    /// How an action ended, and what is kept of it. An action without a handler failed.
    pub(super) fn of_action(mut self, run: &HookRun, engine: &str) -> (ActionEnd, Kept) {
        let succeeded = matches!(self.returned, Returned::Handled | Returned::Exited { .. });
        let (results, said) = (std::mem::take(&mut self.results), self.said_failed.take());
        let end = ActionEnd::of(&run.unit, self.returned.clone(), said, results, self.status_set);
        let outcome = match succeeded {
            true => HookOutcome::Handled,
            false => HookOutcome::Failed { message: end.message.clone() },
        };
        let kept = self.kept(run, engine, outcome);
        (end, kept)
    }

    fn kept(self, run: &HookRun, engine: &str, outcome: HookOutcome) -> Kept {
        let keeps = !matches!(outcome, HookOutcome::Failed { .. });
        let journal = JournalRecord {
            seq: run.operation().0,
            event: run.event.clone(),
            attempt: run.attempt,
            snapshot: run.snapshot,
            charm: run.charm.digest,
            component: self.component.unwrap_or(Digest::from_bytes([0; 32])),
            engine: engine.to_owned(),
            started_at: self.started_at,
            outcome,
            costs: self.costs,
            coalesced: run.coalesced.clone(),
            calls: self.calls,
            seed: self.seed,
            sealed: None,
        };
        match keeps {
            true => Kept { effects: self.effects, leader_term: self.leader_term, journal: Some(journal) },
            false => Kept { journal: Some(journal), ..Kept::default() },
        }
    }
}

fn failed(message: String, status_set: bool) -> (HookEnd, HookOutcome) {
    (HookEnd::Failed { message: message.clone(), status_set }, HookOutcome::Failed { message })
}
