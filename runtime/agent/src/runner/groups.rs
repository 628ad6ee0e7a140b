//! The parallel groups of actions: actions of one group on one machine run one after the other (`docs/hook-model.md`
//! 1.3).

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use periapt_host_api::MachineId;
use tokio::sync::OwnedMutexGuard;

type Turn = Arc<tokio::sync::Mutex<()>>;

/// The groups with a running or waiting action.
#[derive(Debug, Default)]
pub(crate) struct Groups(Mutex<BTreeMap<(MachineId, String), Turn>>);

impl Groups {
    /// Waits for a group's turn, first come, first served. The turn ends when the guard is dropped.
    pub(crate) async fn enter(&self, machine: MachineId, group: &str) -> OwnedMutexGuard<()> {
        let turn = {
            let mut groups = self.0.lock();
            // Empty groups are removed, because charms may use any number of names.
            groups.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(groups.entry((machine, group.to_owned())).or_default())
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn one_group_of_one_machine_has_one_turn() {
        let groups = Groups::default();
        let turn = groups.enter(MachineId(0), "disk").await;
        assert!(groups.enter(MachineId(0), "disk").now_or_never().is_none());
        assert!(groups.enter(MachineId(0), "").now_or_never().is_some());
        assert!(groups.enter(MachineId(1), "disk").now_or_never().is_some());
        drop(turn);
        assert!(groups.enter(MachineId(0), "disk").now_or_never().is_some());
        assert!(groups.0.lock().len() <= 1, "groups that nobody is in stay");
    }
}
