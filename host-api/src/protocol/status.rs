//! Statuses, and the parts of `status`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

mod derive;
mod full;
mod history;
mod storage;
mod text;
mod units;

pub use derive::derive_application_status;
pub use full::*;
pub use history::*;
pub use storage::*;
pub use text::StatusText;
pub use units::{PlacedUnit, application_of};

/// A unit's or an application's workload status (`docs/hook-model.md` 7.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadStatus {
    /// The unit's hook failed; only shown, never set.
    Error,
    /// The charm waits for an operator.
    Blocked,
    /// The charm prepares the workload.
    Maintenance,
    /// The charm waits for another application.
    Waiting,
    /// The workload is in service.
    Active,
    /// The unit is gone.
    Terminated,
    /// The charm has set no status yet.
    Unknown,
}

impl WorkloadStatus {
    /// Returns the word that `status` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Blocked => "blocked",
            Self::Maintenance => "maintenance",
            Self::Waiting => "waiting",
            Self::Active => "active",
            Self::Terminated => "terminated",
            Self::Unknown => "unknown",
        }
    }

    /// Returns one of the four statuses that a charm may set, or none for any other word.
    pub fn settable(word: &str) -> Option<Self> {
        match word {
            "blocked" => Some(Self::Blocked),
            "maintenance" => Some(Self::Maintenance),
            "waiting" => Some(Self::Waiting),
            "active" => Some(Self::Active),
            _ => None,
        }
    }
}

impl fmt::Display for WorkloadStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The status of a unit's agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentStatus {
    /// No agent has reported yet.
    Allocating,
    /// A hook is running.
    Executing,
    /// No hook is due.
    Idle,
    /// A hook failed, or the unit could not be placed.
    Error,
    /// The agent failed.
    Failed,
    /// The agent is not communicating; only shown, never set.
    Lost,
}

impl AgentStatus {
    /// Returns the word that `status` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allocating => "allocating",
            Self::Executing => "executing",
            Self::Idle => "idle",
            Self::Error => "error",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}

impl fmt::Display for AgentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The state of a relation (`docs/hook-model.md` 7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelationState {
    /// No leader has entered the scope yet.
    #[default]
    Joining,
    /// A leader of either side has entered the scope.
    Joined,
    /// An operator suspended the relation, and some units are still in scope.
    Suspending,
    /// An operator suspended the relation, and all units have left.
    Suspended,
    /// The relation is being removed.
    Dying,
}

impl RelationState {
    /// Returns the word that `status` shows.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Joined => "joined",
            Self::Suspending => "suspending",
            Self::Suspended => "suspended",
            Self::Dying => "dying",
        }
    }
}

/// A status with its message and the time since which it holds. `S` is the kind of status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StatusInfo<S> {
    /// The status.
    pub status: S,
    /// A message for people; may be empty.
    pub message: String,
    /// A JSON object for programs; mostly empty.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub data: serde_json::Map<String, serde_json::Value>,
    /// The time since which status, message and data are unchanged (ST-3).
    pub since: Timestamp,
}

impl<S> StatusInfo<S> {
    /// Creates a status without data.
    pub fn new(status: S, message: impl Into<String>, since: Timestamp) -> Self {
        Self { status, message: message.into(), data: serde_json::Map::new(), since }
    }
}

/// The life of an entity: from alive through dying to dead, never back (`docs/hook-model.md` 7.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// The entity is in use.
    #[default]
    Alive,
    /// The entity is being removed; its agent winds it up.
    Dying,
    /// The entity's agent has finished with it.
    Dead,
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Alive => "alive",
            Self::Dying => "dying",
            Self::Dead => "dead",
        })
    }
}
