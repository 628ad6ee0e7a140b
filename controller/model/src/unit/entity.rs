//! The unit entity.

use periapt_host_api::{
    MachineId, Timestamp, UnitName,
    command::{Placement, ResolveMode},
    ports::OpenedPorts,
    record::{HookStep, Operation, UnitRecord},
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    usage::Usage,
};
use serde::{Deserialize, Serialize};

/// A unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Unit {
    /// The unit's name. It is never reused.
    pub name: UnitName,
    /// The unit's life.
    pub life: Life,
    /// The unit's machine; none until the assigner has found one.
    pub machine: Option<MachineId>,
    /// The operator's placement directive.
    pub placement: Option<Placement>,
    /// The principal of a subordinate.
    pub principal: Option<UnitName>,
    /// The operator's `resolved` for a failed hook.
    pub resolved: Option<ResolveMode>,
    /// The unit's record: the state of its uniter.
    pub record: UnitRecord,
    /// The last accepted commit. If it is sent again, it is accepted without effect.
    pub last_commit: Option<CommitMark>,
    /// The number of the last accepted early item.
    pub early_number: u64,
    /// The last workload status that the charm set.
    pub workload_status: StatusInfo<WorkloadStatus>,
    /// The last status that the agent set.
    pub agent_status: StatusInfo<AgentStatus>,
    /// The times at which the same statuses were set again (ST-3).
    #[serde(default, skip_serializing_if = "StatusRefreshes::is_empty")]
    pub refreshed: StatusRefreshes,
    /// The resource usage of the unit's hooks.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// The open ports.
    pub ports: Vec<OpenedPorts>,
    /// The time of the creation.
    pub created_at: Timestamp,
}

impl Unit {
    /// Returns true if the unit waits for a retry or for `resolved` (1.9, U-33).
    pub(crate) fn is_in_error(&self) -> bool {
        matches!(
            self.record.operation,
            Operation::Hook { step: HookStep::Failed(_), .. } | Operation::DeployFailed { .. }
        )
    }
}

/// The times at which the current statuses of a unit were set again. The status history shows them (ST-3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct StatusRefreshes {
    /// The last time that the charm set the same workload status.
    pub workload: Option<Timestamp>,
    /// The last time that the agent set the same status.
    pub agent: Option<Timestamp>,
}

impl StatusRefreshes {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The identity of an accepted commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommitMark {
    /// The record's `seq` that the commit started from.
    pub seq: u64,
    /// The digest over the whole commit.
    pub digest: String,
}
