//! Counters: numbers that are handed out once.

use periapt_host_api::ApplicationName;
use serde::{Deserialize, Serialize};

/// What is counted. A sequence stays while its model lives, so that no number comes twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SequenceKey {
    /// Machines.
    Machine,
    /// Relations.
    Relation,
    /// Operations and tasks, from 1.
    Task,
    /// Storage of all names.
    Storage,
    /// Work items.
    Work,
    /// Units of applications of one name, even when the application was removed in between.
    Unit(ApplicationName),
    /// Revisions of charms of one name (M-13).
    CharmRevision(String),
}

/// A counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sequence {
    /// Of what.
    pub key: SequenceKey,
    /// The next number to hand out.
    pub next: u64,
}
