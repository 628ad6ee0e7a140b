//! Parts of the confinement that a host lacks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of the confinement that a host lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The part.
    pub part: String,
    /// The reason, and the remedy.
    pub reason: String,
}

impl Gap {
    /// Creates a gap.
    pub(super) fn new(part: &str, reason: impl Into<String>) -> Self {
        Self { part: part.to_owned(), reason: reason.into() }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.reason)
    }
}
