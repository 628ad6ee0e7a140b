//! The report of a following controller to the one that leads.

use std::{collections::BTreeSet, time::Duration};

use periapt_host_api::{AgentName, Level, command::FailingWorker, program::RunningProgram};
use serde::{Deserialize, Serialize};

/// The time for which a report counts. Some may be lost before a controller's agents count as disconnected.
pub(crate) const REPORT_HELD: Duration = Duration::from_secs(7);

/// The agents that are connected to a following controller.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PresenceReport {
    /// The term of the leading controller.
    pub(crate) term: u64,
    /// The name of the following controller.
    pub(crate) member: String,
    /// The last position of the log that it has applied.
    pub(crate) applied: u64,
    /// The last position whose effect is durable on its disk.
    #[serde(default)]
    pub(crate) durable: u64,
    /// The highest level that its program knows.
    #[serde(default)]
    pub(crate) level: Level,
    /// True if it is not up to date with the log.
    #[serde(default)]
    pub(crate) stale: bool,
    /// The program that it runs; none from controllers that do not replace themselves.
    #[serde(default)]
    pub(crate) program: Option<RunningProgram>,
    /// Its workers that failed a short while ago; none from controllers of earlier versions.
    #[serde(default)]
    pub(crate) failing_workers: Vec<FailingWorker>,
    /// The URL by which clients reach it.
    pub(crate) url: String,
    /// The agents.
    pub(crate) agents: BTreeSet<AgentName>,
}
