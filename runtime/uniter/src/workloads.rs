//! The way of a workload's starts and notices from its pod to its unit: the keeper's knowledge, its words to a runner,
//! and the runner's knowledge.
//!
//! Agent and laboratory carry the words. Each side that dies is told all again by the one before it, and the unit's
//! record says what the charm knows already.

use std::collections::BTreeMap;

use periapt_host_api::{ContainerName, UnitName, notice::WorkloadNotice};
use serde::{Deserialize, Serialize};

use crate::WorkloadBoots;

mod known;
mod listening;

pub use known::KnownWorkloads;
pub use listening::ListeningPods;

/// A pod: the container of a unit.
pub type PodId = (UnitName, ContainerName);

/// A word of a keeper to a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkloadsWord {
    /// The pods that listen.
    Pods(WorkloadsTold),
    /// The pods of the units for which some began or ended.
    Changed(WorkloadsChanged),
    /// Notices of pods that the runner knows.
    Notices(NoticesTold),
}

/// The extent to which a runner knows the workloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadsKnown {
    /// The version of the last [`WorkloadsTold`] or [`WorkloadsChanged`].
    pub pods: u64,
    /// The place of the last notice.
    pub notices: u64,
}

/// Notices of workloads, in the order of their arrival.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NoticesTold {
    /// The place of the last one.
    pub last: u64,
    /// The notices.
    pub notices: Vec<NoticeTold>,
}

/// A notice of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NoticeTold {
    /// The unit.
    pub unit: UnitName,
    /// The container.
    pub container: ContainerName,
    /// The id of its start.
    pub boot_id: String,
    /// The number of the notice, counted from that start.
    pub number: u64,
    /// Its place among the notices of the model.
    pub arrival: u64,
    /// The notice.
    pub notice: WorkloadNotice,
}

/// The workloads of the units that listen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadsTold {
    /// The number of the last start or end of a workload that this contains.
    pub version: u64,
    /// The boot ids, by unit and container.
    pub boots: BTreeMap<UnitName, WorkloadBoots>,
}

/// The workloads of the units that changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkloadsChanged {
    /// The version from which this goes on. It tells nothing to a runner that knows less.
    pub since: u64,
    /// The number of the last start or end of a workload that this contains.
    pub version: u64,
    /// The boot ids, by unit and container. They are empty for a unit of which no workload listens any more.
    pub boots: BTreeMap<UnitName, WorkloadBoots>,
}
