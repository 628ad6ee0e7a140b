//! The inputs of an executor.

use std::time::Duration;

use periapt_host_api::{OperationId, Refusal, Timestamp, commit::EarlyEffect};

use super::RunReport;
use crate::Jitter;

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
