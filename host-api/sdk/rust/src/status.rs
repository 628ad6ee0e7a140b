//! What a charm says of its workload.

use crate::bindings::periapt::charm::status as wit;
use std::fmt;

/// The word of a status.
pub use wit::WorkloadStatus as Workload;

/// A workload's status and its message.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The word.
    pub workload: Workload,
    /// What an operator should know, or do.
    pub message: String,
}

impl Status {
    /// It works.
    pub fn active(message: impl Into<String>) -> Self {
        Self { workload: Workload::Active, message: message.into() }
    }

    /// It waits for an operator; the message says for what.
    pub fn blocked(message: impl Into<String>) -> Self {
        Self { workload: Workload::Blocked, message: message.into() }
    }

    /// It waits for another unit or application.
    pub fn waiting(message: impl Into<String>) -> Self {
        Self { workload: Workload::Waiting, message: message.into() }
    }

    /// It is being worked on.
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
