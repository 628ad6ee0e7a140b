//! The entity of a unit's workloads.

use periapt_host_api::{AgentName, Timestamp, UnitName, container::WorkloadsReport, usage::WorkloadCounts};
use serde::{Deserialize, Serialize};

/// The state of a unit's workloads, as its agent reported it last. Units that never had some have no such entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReportedWorkloads {
    /// The unit.
    pub unit: UnitName,
    /// The agent that reported it.
    pub agent: AgentName,
    /// The time of the report.
    pub at: Timestamp,
    /// The report.
    pub report: WorkloadsReport,
    /// The sums over all reports.
    #[serde(default, skip_serializing_if = "WorkloadCounts::is_none")]
    pub counts: WorkloadCounts,
}
