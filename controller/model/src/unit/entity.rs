//! Units.

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
    /// Its name; never reused.
    pub name: UnitName,
    /// Life.
    pub life: Life,
    /// Its machine; none until the assigner found one.
    pub machine: Option<MachineId>,
    /// Where the operator wants it.
    pub placement: Option<Placement>,
    /// The principal, of a subordinate.
    pub principal: Option<UnitName>,
    /// The operator's answer to its failed hook.
    pub resolved: Option<ResolveMode>,
    /// What its uniter must remember.
    pub record: UnitRecord,
    /// The last commit that was taken, to know it when it comes again.
    pub last_commit: Option<CommitMark>,
    /// The number of the last early item that was taken.
    pub early_number: u64,
    /// What the charm said last.
    pub workload_status: StatusInfo<WorkloadStatus>,
    /// What the agent said last.
    pub agent_status: StatusInfo<AgentStatus>,
    /// When the statuses were said again (ST-3).
    #[serde(default, skip_serializing_if = "Refreshed::is_empty")]
    pub refreshed: Refreshed,
    /// What its hooks have used.
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub usage: Usage,
    /// What it has open.
    pub ports: Vec<OpenedPorts>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Unit {
    /// Whether it waits for a retry or for `resolved` (1.9, U-33).
    pub(crate) fn is_in_error(&self) -> bool {
        matches!(
            self.record.operation,
            Operation::Hook { step: HookStep::Failed(_), .. } | Operation::DeployFailed { .. }
        )
    }
}

/// When the present statuses of a unit were said again, if they were: their history shows that time (ST-3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Refreshed {
    /// By the charm.
    pub workload: Option<Timestamp>,
    /// By the agent.
    pub agent: Option<Timestamp>,
}

impl Refreshed {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A commit that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommitMark {
    /// The `seq` that it started from.
    pub seq: u64,
    /// Over all that it said.
    pub digest: String,
}
