//! What a command writes.

use std::collections::BTreeMap;

use periapt_host_api::{
    AgentName, ApplicationName, ModelUuid, Timestamp,
    action::{TaskMessage, TaskResults},
    journal::JournalRecord,
    logs::LogLine,
    status::{AgentStatus, StatusInfo, WorkloadStatus},
};
use serde::{Deserialize, Serialize};

use crate::entity::{CrossId, Entity, EntityKey};

/// The most entities that one command writes.
pub const MAX_KEYS: usize = 100;

/// The most bytes of keys and values that one command writes, in stored form; the store refuses what is more.
pub const MAX_BYTES: usize = 1 << 20;

/// All writes of one command: wholly or not at all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Entities that are new or differ; none: deleted.
    pub puts: BTreeMap<EntityKey, Option<Entity>>,
    /// Rows to append, in order.
    pub records: Vec<RecordAppend>,
    /// What changes in memory alone.
    pub volatile: Vec<VolatileChange>,
}

impl Changes {
    /// Whether nothing is to be stored.
    pub fn stores_nothing(&self) -> bool {
        self.puts.is_empty() && self.records.is_empty()
    }
}

/// A row to append: logs, status history, journal.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordAppend {
    /// The model.
    pub model: ModelUuid,
    /// Whose: `mysql/0` (a unit), `mysql` (an application), ...
    pub entity: String,
    /// Its own time, by which it is pruned.
    pub at: Timestamp,
    /// Content.
    pub body: RecordBody,
}

/// Kinds of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// Log lines.
    Log,
    /// Status history.
    Status,
    /// The hook journal.
    Journal,
    /// Messages and results of a task.
    Task,
}

/// A row's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordBody {
    /// A log line.
    Log(LogLine),
    /// A status that differs from the one before (ST-3).
    Status(StatusRecord),
    /// A hook run.
    Journal(Box<JournalRecord>),
    /// A message of a running action.
    TaskMessage(TaskMessage),
    /// What an action left.
    TaskResults(Box<TaskResults>),
}

impl RecordBody {
    /// Its kind.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Log(_) => RecordKind::Log,
            Self::Status(_) => RecordKind::Status,
            Self::Journal(_) => RecordKind::Journal,
            Self::TaskMessage(_) | Self::TaskResults(_) => RecordKind::Task,
        }
    }
}

/// A line of status history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatusRecord {
    /// A unit's workload status.
    Workload(StatusInfo<WorkloadStatus>),
    /// A unit's agent status.
    Agent(StatusInfo<AgentStatus>),
    /// What a leader said of its application.
    Application(StatusInfo<WorkloadStatus>),
}

/// What is kept in memory alone, and lost with the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolatileChange {
    /// A lease was granted, renewed, or is gone.
    Lease {
        /// The application's model.
        model: ModelUuid,
        /// Which application's leadership.
        application: ApplicationName,
        /// When it lapses, on the controller's monotonic clock; none: nobody holds it.
        expires_ms: Option<u64>,
    },
    /// A model is to look again at a relation that another model has a part in, or has looked.
    Crossing {
        /// The model that looks.
        model: ModelUuid,
        /// Which relation.
        relation: CrossId,
        /// What is known of it.
        news: CrossNews,
    },
    /// An agent was heard of.
    Presence {
        /// Which.
        agent: AgentName,
        /// Whether it is connected.
        connected: bool,
        /// When.
        at: Timestamp,
    },
}

/// Whether a model knows what the other one did in their relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossNews {
    /// There may be something.
    Some,
    /// It has copied all.
    None,
}
