//! The status history of units, applications and machines, the oldest status first (`docs/hook-model.md` 7.5, ST-3).

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The kind of status that a line records, with Juju's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusKind {
    /// The status of a unit's agent.
    JujuUnit,
    /// The workload status that a charm sets for its unit.
    Workload,
    /// The status that a leader sets for its application.
    Application,
    /// The status of a machine.
    Machine,
}

impl fmt::Display for StatusKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::JujuUnit => "juju-unit",
            Self::Workload => "workload",
            Self::Application => "application",
            Self::Machine => "machine",
        })
    }
}

/// The kinds of status that a query asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusHistoryType {
    /// Both kinds of a unit: agent and workload.
    #[default]
    Unit,
    /// A single kind.
    Only(StatusKind),
}

impl StatusHistoryType {
    /// Returns true if the query asks for the kind.
    pub fn admits(self, kind: StatusKind) -> bool {
        match self {
            Self::Unit => matches!(kind, StatusKind::JujuUnit | StatusKind::Workload),
            Self::Only(only) => only == kind,
        }
    }
}

impl fmt::Display for StatusHistoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => f.pad("unit"),
            Self::Only(kind) => kind.fmt(f),
        }
    }
}

/// The error for a word that names no kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid status type {0:?}: unit, juju-unit, workload, application or machine expected")]
pub struct UnknownStatusType(String);

impl FromStr for StatusHistoryType {
    type Err = UnknownStatusType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "unit" => Self::Unit,
            "juju-unit" => Self::Only(StatusKind::JujuUnit),
            "workload" => Self::Only(StatusKind::Workload),
            "application" => Self::Only(StatusKind::Application),
            // A machine is an agent: its instance has no statuses of its own.
            "machine" | "juju-machine" => Self::Only(StatusKind::Machine),
            _ => return Err(UnknownStatusType(text.to_owned())),
        })
    }
}

/// A query for status history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusHistoryQuery {
    /// The name of a unit, an application or a machine.
    pub entity: String,
    /// The kinds of status.
    pub kind: StatusHistoryType,
    /// The largest number of lines, of which the newest count; none means the controller's limit.
    pub tail: Option<u32>,
    /// The earliest time of a line.
    pub since: Option<Timestamp>,
}

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StatusHistoryEntry {
    /// The status.
    pub status: String,
    /// A message for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// A JSON object for programs.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub data: serde_json::Map<String, serde_json::Value>,
    /// The time when the status was set; for the newest of its kind, the time when it was set last (ST-3).
    pub since: Timestamp,
    /// The kind of status.
    #[serde(rename = "type")]
    pub kind: StatusKind,
}

/// Lines of a history, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StatusHistory {
    /// The lines, in the order of their commits.
    pub entries: Vec<StatusHistoryEntry>,
}
