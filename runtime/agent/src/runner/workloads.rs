//! The workloads beside the runner's units, as the keeper tells of them.

use std::sync::Arc;

use periapt_host_api::UnitName;
use periapt_uniter::WorkloadBoots;
use tokio::sync::watch;

use crate::protocol::WorkloadsTold;

/// The workloads that listen. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workloads(Arc<watch::Sender<WorkloadsTold>>);

impl Workloads {
    /// Takes the keeper's word.
    pub(crate) fn replace(&self, told: WorkloadsTold) {
        self.0.send_replace(told);
    }

    /// Returns the workloads beside a unit.
    pub(crate) fn of(&self, unit: &UnitName) -> WorkloadBoots {
        self.0.borrow().boots.get(unit).cloned().unwrap_or_default()
    }

    /// Returns the version of the keeper's last word.
    pub(crate) fn version(&self) -> u64 {
        self.0.borrow().version
    }

    /// Returns a receiver of the changes.
    pub(crate) fn changes(&self) -> watch::Receiver<WorkloadsTold> {
        self.0.subscribe()
    }
}
