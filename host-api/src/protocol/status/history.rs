//! Status history: what units, applications and machines said, the oldest first (`hook-model.md` 7.5, ST-3).

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Whose statuses a line is of, as Juju names the kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusKind {
    /// What a unit's agent does.
    JujuUnit,
    /// What a charm says of its unit's workload.
    Workload,
    /// What a leader says of its application.
    Application,
    /// A machine.
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

/// Which lines are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusHistoryType {
    /// Both kinds of a unit.
    #[default]
    Unit,
    /// One kind.
    Only(StatusKind),
}

impl StatusHistoryType {
    /// Whether a kind is among those asked for.
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

/// None of the kinds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no type of status: unit, juju-unit, workload, application or machine expected")]
pub struct UnknownStatusType(String);

impl FromStr for StatusHistoryType {
    type Err = UnknownStatusType;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "unit" => Self::Unit,
            "juju-unit" => Self::Only(StatusKind::JujuUnit),
            "workload" => Self::Only(StatusKind::Workload),
            "application" => Self::Only(StatusKind::Application),
            // A machine is an agent's: its instance has no statuses of its own.
            "machine" | "juju-machine" => Self::Only(StatusKind::Machine),
            _ => return Err(UnknownStatusType(text.to_owned())),
        })
    }
}

/// What of a history is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusHistoryQuery {
    /// A unit's, an application's or a machine's name.
    pub entity: String,
    /// Which lines.
    pub kind: StatusHistoryType,
    /// At most this many, the newest; none: as many as the controller gives.
    pub tail: Option<u32>,
    /// None that is older.
    pub since: Option<Timestamp>,
}

/// One line of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StatusHistoryEntry {
    /// The status.
    pub status: String,
    /// For people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub data: serde_json::Map<String, serde_json::Value>,
    /// When it was said; of the newest of its kind, when it was said last (ST-3).
    pub since: Timestamp,
    /// Of what.
    #[serde(rename = "type")]
    pub kind: StatusKind,
}

/// Lines of a history, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct StatusHistory {
    /// In the order in which they were committed.
    pub entries: Vec<StatusHistoryEntry>,
}
