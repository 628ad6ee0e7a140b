//! Statuses of the workload.

use crate::bindings::periapt::charm::status as wit;
use std::fmt;

/// The workload status without its message.
pub use wit::WorkloadStatus as Workload;

/// A workload's status and its message.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The status.
    pub workload: Workload,
    /// The message for the operator.
    pub message: String,
}

impl Status {
    /// Creates the status of a workload that works.
    pub fn active(message: impl Into<String>) -> Self {
        Self { workload: Workload::Active, message: message.into() }
    }

    /// Creates the status of a workload that waits for an operator. The message names the needed step.
    pub fn blocked(message: impl Into<String>) -> Self {
        Self { workload: Workload::Blocked, message: message.into() }
    }

    /// Creates the status of a workload that waits for another unit or application.
    pub fn waiting(message: impl Into<String>) -> Self {
        Self { workload: Workload::Waiting, message: message.into() }
    }

    /// Creates the status of a workload that the charm is working on.
    pub fn maintenance(message: impl Into<String>) -> Self {
        Self { workload: Workload::Maintenance, message: message.into() }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.workload {
            Workload::Maintenance => "maintenance",
            Workload::Blocked => "blocked",
            Workload::Waiting => "waiting",
            Workload::Active => "active",
        };
        if self.message.is_empty() { f.write_str(word) } else { write!(f, "{word}: {}", self.message) }
    }
}
