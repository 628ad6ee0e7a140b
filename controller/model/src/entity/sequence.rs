//! Counters: numbers that are handed out once each.

use periapt_host_api::ApplicationName;
use serde::{Deserialize, Serialize};

/// The subject of a counter. A sequence stays while its model lives, so that no number is used twice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SequenceKey {
    /// Machines.
    Machine,
    /// Relations.
    Relation,
    /// Operations and tasks, from 1.
    Task,
    /// Storage instances, whatever their name.
    Storage,
    /// Work items.
    Work,
    /// Units of applications with this name; counting goes on if such an application is removed and deployed again.
    Unit(ApplicationName),
    /// Revisions of charms with this name (M-13).
    CharmRevision(String),
}

/// A counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sequence {
    /// The subject of the counter.
    pub key: SequenceKey,
    /// The next number to hand out.
    pub next: u64,
}
