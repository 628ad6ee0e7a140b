//! What happens to a unit's executor.

use std::time::Duration;

use periapt_host_api::{OperationId, Refusal, Timestamp, commit::EarlyEffect};

use super::RunReport;
use crate::Jitter;

/// The time, by the three clocks that a unit goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The clock for people.
    pub wall: Timestamp,
    /// The clock of the unit's timers, which nobody sets: retries, update-status, events that charms asked for.
    pub timer: Timestamp,
    /// How long the driver has been there: for short waits, which no host that slept need make up for.
    pub steady: Duration,
}

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum ExecutorInput {
    /// The unit is looked after from now on.
    Begin,
    /// A hook of the unit may have killed a runner. It is tried before the unit begins, and alone: nothing else runs.
    Try {
        /// The run.
        operation: OperationId,
        /// How many runners died under it.
        deaths: u32,
    },
    /// A frame touched something that the unit's decision [depends on](super::Dependency).
    Touched,
    /// The view is that of another store.
    StoreReplaced,
    /// A time that was asked for with [`ExecutorCommand::WakeAt`](super::ExecutorCommand::WakeAt) has come. Too early does no harm.
    Woken,
    /// The answer to [`ExecutorCommand::FetchCharm`](super::ExecutorCommand::FetchCharm).
    Charm(CharmAnswer),
    /// The turn that [`ExecutorCommand::TakeTurn`](super::ExecutorCommand::TakeTurn) asked for has come.
    Turn,
    /// Effects that left a running hook early, in order.
    Said(Vec<(Timestamp, EarlyEffect)>),
    /// What [`ExecutorCommand::Run`](super::ExecutorCommand::Run) began has ended, however.
    Ended {
        /// What came of it.
        report: Box<RunReport>,
        /// For the waits that follow.
        jitter: Jitter,
    },
    /// The answer to [`ExecutorCommand::Commit`](super::ExecutorCommand::Commit).
    CommitAnswered(SendOutcome),
    /// The answer to [`ExecutorCommand::SendEarly`](super::ExecutorCommand::SendEarly).
    EarlyAnswered(SendOutcome),
}

/// What became of something that was sent to the controller.
#[derive(Debug, Clone, PartialEq)]
pub enum SendOutcome {
    /// It happened.
    Accepted,
    /// Nothing of it happened, and the same again would do no better.
    Refused(Refusal),
    /// It is not known whether it happened.
    Unreachable,
}

/// What became of a charm that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CharmAnswer {
    /// It can run.
    Ready,
    /// It cannot, and that is its own fault.
    Unusable {
        /// Why, in words for the unit's status.
        message: String,
        /// For the wait that follows.
        jitter: Jitter,
    },
    /// It is not here yet, for this reason.
    Away(String),
}
