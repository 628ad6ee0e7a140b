//! The statuses that one hook set.

use periapt_host_api::status::{StatusInfo, WorkloadStatus};

/// The statuses that this hook set so far.
#[derive(Debug, Default)]
pub(crate) struct Statuses {
    pub(super) unit: Option<StatusInfo<WorkloadStatus>>,
    pub(super) application: Option<StatusInfo<WorkloadStatus>>,
    /// The count of statuses and versions that this hook set.
    pub(super) made: usize,
}

impl Statuses {
    /// Returns true if the charm set its unit's status.
    pub(crate) fn unit_was_set(&self) -> bool {
        self.unit.is_some()
    }
}
