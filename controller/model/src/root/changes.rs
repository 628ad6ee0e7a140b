//! The writes of a command.

use std::collections::BTreeMap;

use periapt_host_api::{
    AgentName, ApplicationName, ModelUuid, Timestamp,
    action::{TaskMessage, TaskResults},
    audit::AuditEntry,
    journal::JournalRecord,
    logs::LogLine,
    status::{AgentStatus, StatusInfo, WorkloadStatus},
};
use serde::{Deserialize, Serialize};

use super::Presence;
use crate::entity::{CrossModelId, Entity, EntityKey};

/// The most entities that one command writes.
pub const MAX_KEYS: usize = 100;

/// The most bytes of keys and values that one command writes, in stored form; the store refuses what is more.
pub const MAX_BYTES: usize = 1 << 20;

/// All writes of one command. They are applied atomically.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Changes {
    /// Entities to write, or none to delete.
    pub puts: BTreeMap<EntityKey, Option<Entity>>,
    /// Rows to append, in order.
    pub records: Vec<RecordAppend>,
    /// Changes of state that is kept in memory only.
    pub volatile: Vec<VolatileChange>,
}

impl Changes {
    /// Adds the changes of another part of the same command.
    pub fn extend(&mut self, more: Self) {
        self.puts.extend(more.puts);
        self.records.extend(more.records);
        self.volatile.extend(more.volatile);
    }

    /// Returns true if there is nothing to store.
    pub fn stores_nothing(&self) -> bool {
        self.puts.is_empty() && self.records.is_empty()
    }
}

/// A row to append: logs, status history, journal.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordAppend {
    /// The model; the nil UUID for a row of the controller.
    pub model: ModelUuid,
    /// The entity that the row is about: `mysql/0` (a unit), `mysql` (an application), ...
    pub entity: String,
    /// The time of the row, by which it is pruned.
    pub at: Timestamp,
    /// The row's content.
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
    /// The audit log of the controller, which belongs to no model.
    Audit,
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
    /// The results of an action.
    TaskResults(Box<TaskResults>),
    /// An entry of the audit log.
    Audit(Box<AuditEntry>),
}

impl RecordBody {
    /// Returns the kind of the row.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Log(_) => RecordKind::Log,
            Self::Status(_) => RecordKind::Status,
            Self::Journal(_) => RecordKind::Journal,
            Self::TaskMessage(_) | Self::TaskResults(_) => RecordKind::Task,
            Self::Audit(_) => RecordKind::Audit,
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
    /// A status that the leader set for its application.
    Application(StatusInfo<WorkloadStatus>),
}

/// A change of state that is kept in memory only, and lost when the process ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolatileChange {
    /// A lease was granted, renewed or released.
    Lease {
        /// The application's model.
        model: ModelUuid,
        /// The application whose leadership the lease is for.
        application: ApplicationName,
        /// The time at which the lease expires, in milliseconds of the controller's monotonic clock; none if it was
        /// released.
        expires_ms: Option<u64>,
    },
    /// A model must look at a cross-model relation again, or has looked at it.
    Crossing {
        /// The model that looks.
        model: ModelUuid,
        /// The relation.
        relation: CrossModelId,
        /// The state of the model's copy.
        copy: CrossModelCopy,
    },
    /// An agent connected, made a call, or disconnected.
    Presence {
        /// The agent.
        agent: AgentName,
        /// Its connection state from now on.
        presence: Presence,
    },
}

/// The state of a model's copy of a cross-model relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossModelCopy {
    /// The other model may have made changes that are not copied yet.
    Behind,
    /// All changes are copied.
    UpToDate,
}
