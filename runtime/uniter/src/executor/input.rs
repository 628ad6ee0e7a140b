//! The inputs of an executor.

use std::time::Duration;

use periapt_host_api::{
    Digest, LeaderTerm, OperationId, Refusal, Timestamp,
    action::TaskResults,
    commit::{EarlyEffect, HookEffects},
    journal::{HookCosts, RecordedCalls},
};

use crate::{Jitter, UnitWorkloads};

/// The time on the three clocks of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The wall clock, for people.
    pub wall: Timestamp,
    /// The clock of the unit's timers, which cannot be set: retries, update-status, delayed events.
    pub timer: Timestamp,
    /// The monotonic clock since the driver's start, for short waits. It may stop while the host is suspended.
    pub steady: Duration,
}

/// One input.
#[derive(Debug, Clone)]
pub enum ExecutorInput {
    /// Start managing the unit.
    Begin,
    /// Try a hook of the unit that may have killed a runner, before the unit starts, and alone.
    Try {
        /// The run.
        operation: OperationId,
        /// The number of runners that died during it.
        deaths: u32,
    },
    /// A frame changed a [dependency](super::Dependency) of the unit's decision.
    DependenciesChanged,
    /// The workloads beside the unit that listen now.
    Workloads(UnitWorkloads),
    /// The view comes from another store.
    StoreReplaced,
    /// A time of [`ExecutorCommand::WakeAt`](super::ExecutorCommand::WakeAt) has come. An early wake-up is harmless.
    Woken,
    /// The answer to [`ExecutorCommand::FetchCharm`](super::ExecutorCommand::FetchCharm).
    Charm(CharmAnswer),
    /// The turn of [`ExecutorCommand::TakeTurn`](super::ExecutorCommand::TakeTurn) has come.
    Turn,
    /// Early effects of the running hook, in order.
    Said(Vec<(Timestamp, EarlyEffect)>),
    /// The run of [`ExecutorCommand::Run`](super::ExecutorCommand::Run) has ended.
    Ended {
        /// The report of the run.
        report: Box<RunReport>,
        /// The jitter for later waits.
        jitter: Jitter,
    },
    /// The answer to [`ExecutorCommand::Commit`](super::ExecutorCommand::Commit).
    CommitAnswered(SendOutcome),
    /// The answer to [`ExecutorCommand::SendEarly`](super::ExecutorCommand::SendEarly).
    EarlyAnswered(SendOutcome),
}

/// The outcome of a message to the controller.
#[derive(Debug, Clone, PartialEq)]
pub enum SendOutcome {
    /// The controller carried it out.
    Accepted,
    /// It had no effect, and another attempt would be refused, too.
    Refused(Refusal),
    /// The outcome is unknown.
    Unreachable,
}

/// The answer to a request for a charm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CharmAnswer {
    /// The charm is ready.
    Ready,
    /// The charm is invalid.
    Unusable {
        /// The reason, for the unit's status.
        message: String,
        /// The jitter for the next wait.
        jitter: Jitter,
    },
    /// The charm is not available yet. Holds the reason.
    Away(String),
}

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
