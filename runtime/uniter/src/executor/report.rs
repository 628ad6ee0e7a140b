//! The report of a driver about a run that ended.

use periapt_host_api::{
    Digest, LeaderTerm, Timestamp,
    action::TaskResults,
    commit::HookEffects,
    journal::{HookCosts, HookOutcome, JournalRecord, RecordedCalls},
};

use crate::{ActionEnd, HookEnd, HookRun};

/// The return of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returned {
    /// The handler returned success.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// The handler failed, trapped, exceeded a budget, or could not run.
    Failed {
        /// The exit code; not 0.
        code: i32,
        /// The message of the charm or the sandbox; may be empty.
        message: String,
    },
    /// An operator's tool ended. Its exit code is a result and no failure, and its effects are committed in any case
    /// (C-9).
    Exited {
        /// The exit code.
        code: i32,
    },
    /// The run was stopped, because an operator cancelled the task.
    Stopped,
}

/// The report of a run. Its early effects were reported before.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// The handler's return.
    pub returned: Returned,
    /// The start of the run.
    pub started_at: Timestamp,
    /// True if the charm called status-set for its unit.
    pub status_set: bool,
    /// The charm's effects.
    pub effects: HookEffects,
    /// The leader term on which the effects depend.
    pub leader_term: Option<LeaderTerm>,
    /// The results of an action, without the return code.
    pub results: TaskResults,
    /// The charm's own failure message for an action.
    pub said_failed: Option<String>,
    /// The component that ran; none if the charm could not be loaded.
    pub component: Option<Digest>,
    /// The costs.
    pub costs: HookCosts,
    /// The calls to the host.
    pub calls: RecordedCalls,
    /// The seed of its random numbers, in hexadecimal digits.
    pub seed: String,
}

impl RunReport {
    /// Creates a report without effects.
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

    /// Creates the report of a run that failed or could not start.
    pub fn failed(message: String, started_at: Timestamp) -> Self {
        Self::of(Returned::Failed { code: 1, message }, started_at)
    }
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

impl RunReport {
    /// Returns the end of a hook, and the parts for its commit. A failed hook keeps its journal record alone.
    pub(super) fn of_hook(self, run: &HookRun, engine: &str) -> (HookEnd, CommittedParts) {
        let status_set = self.status_set;
        let (end, outcome) = match &self.returned {
            Returned::Handled | Returned::Exited { .. } => {
                (HookEnd::Handled { status_set }, HookOutcome::Handled)
            }
            Returned::Unhandled => (HookEnd::Unhandled { status_set }, HookOutcome::Unhandled),
            Returned::Failed { message, .. } => failed(message.clone(), status_set),
            Returned::Stopped => failed("it was stopped".to_owned(), status_set),
        };
        let parts = self.committed_parts(run, engine, outcome);
        (end, parts)
    }

    /// Returns the end of an action, and the parts for its commit. An action without a handler has failed.
    pub(super) fn of_action(mut self, run: &HookRun, engine: &str) -> (ActionEnd, CommittedParts) {
        let succeeded = matches!(self.returned, Returned::Handled | Returned::Exited { .. });
        let (results, said) = (std::mem::take(&mut self.results), self.said_failed.take());
        let end = ActionEnd::of(&run.unit, self.returned.clone(), said, results, self.status_set);
        let outcome = match succeeded {
            true => HookOutcome::Handled,
            false => HookOutcome::Failed { message: end.message.clone() },
        };
        let parts = self.committed_parts(run, engine, outcome);
        (end, parts)
    }

    fn committed_parts(self, run: &HookRun, engine: &str, outcome: HookOutcome) -> CommittedParts {
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
            true => CommittedParts {
                effects: self.effects,
                leader_term: self.leader_term,
                journal: Some(journal),
            },
            false => CommittedParts { journal: Some(journal), ..CommittedParts::default() },
        }
    }
}

fn failed(message: String, status_set: bool) -> (HookEnd, HookOutcome) {
    (HookEnd::Failed { message: message.clone(), status_set }, HookOutcome::Failed { message })
}
