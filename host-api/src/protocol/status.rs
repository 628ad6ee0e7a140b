//! Statuses, and what `status` shows of a model.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

mod derive;
mod full;
mod history;
mod storage;
mod units;

pub use derive::derive_application_status;
pub use full::*;
pub use history::*;
pub use storage::*;
pub use units::{PlacedUnit, application_of};

/// A unit's or an application's workload status (`hook-model.md` 7.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadStatus {
    /// Display only: the unit's hook failed.
    Error,
    /// The charm waits for a person.
    Blocked,
    /// The charm is busy preparing.
    Maintenance,
    /// The charm waits for another application.
    Waiting,
    /// The workload serves.
    Active,
    /// The unit is gone.
    Terminated,
    /// The charm has said nothing yet.
    Unknown,
}

impl WorkloadStatus {
    /// The word that is shown.
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

    /// The four that a charm may set.
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

/// What a unit's agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentStatus {
    /// No agent has reported yet.
    Allocating,
    /// A hook runs.
    Executing,
    /// Nothing is due.
    Idle,
    /// A hook failed, or the unit could not be placed.
    Error,
    /// The agent itself failed.
    Failed,
    /// Display only: the agent is not communicating.
    Lost,
}

impl AgentStatus {
    /// The word that is shown.
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

/// How a relation is (`hook-model.md` 7.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelationState {
    /// No leader has entered its scope yet.
    #[default]
    Joining,
    /// The leader of either side has.
    Joined,
    /// Suspended by an operator, and not all units have left yet.
    Suspending,
    /// Suspended by an operator.
    Suspended,
    /// On its way out.
    Dying,
}

impl RelationState {
    /// The word that is shown.
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
    /// For people; may be empty.
    pub message: String,
    /// For programs: a JSON object; empty most of the time.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub data: serde_json::Map<String, serde_json::Value>,
    /// Since when status, message and data are what they are (ST-3).
    pub since: Timestamp,
}

impl<S> StatusInfo<S> {
    /// A status without data.
    pub fn new(status: S, message: impl Into<String>, since: Timestamp) -> Self {
        Self { status, message: message.into(), data: serde_json::Map::new(), since }
    }
}

/// Alive, dying, dead; never back (`hook-model.md` 7.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    /// Wanted.
    #[default]
    Alive,
    /// Somebody wants it gone; its own agent winds it up.
    Dying,
    /// Its agent is done with it.
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
