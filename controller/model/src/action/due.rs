//! Tasks of units that are gone, and ended tasks that are kept no longer.

use jiff::SignedDuration;
use periapt_host_api::{TaskId, Timestamp, UnitName, action::TaskStatus};

use super::command;
use crate::{
    entity::{ModelKey, Task},
    root::ModelState,
    transaction::Transaction,
};

/// What the operator reads of such a task (L-8).
const UNIT_REMOVED: &str = "unit removed";

/// The most that ended tasks of one model take in memory, in bytes, with their parameters; their messages and results
/// lie in the store alone. The oldest go first.
const MAX_ENDED_MEMORY: u64 = 64 << 20;

/// How many entities one step leaves for what else is in its commit.
const RESERVE: usize = 5;

/// Ends what waits for a unit that is gone, as far as the commit has room: true when nothing is left (Q06). What ran
/// when the unit was removed by force is aborted: nobody will tell how it ends.
pub(crate) fn cancel_all(tx: &mut Transaction<'_>, unit: &UnitName) -> bool {
    while tx.has_room(RESERVE) {
        let id = tx.state.open_tasks(unit).next().map(|task| task.id);
        let Some(task) = id.and_then(|id| tx.state.task(&id).cloned()) else { return true };
        let status = match task.status {
            TaskStatus::Pending => TaskStatus::Cancelled,
            _ => TaskStatus::Aborted,
        };
        command::end(tx, Task::clone(&task), status, UNIT_REMOVED);
    }
    false
}

/// When the oldest of the ended tasks is to go; none if there is none.
pub(crate) fn prune_at(state: &ModelState) -> Option<Timestamp> {
    let config = state.config();
    let kept = u64::from(config.max_action_results_size) << 20;
    if state.ended_bytes() > kept || state.ended_memory() > MAX_ENDED_MEMORY {
        return Some(Timestamp::MIN);
    }
    let (completed, _) = state.ended_tasks().next()?;
    let age = SignedDuration::from_secs(i64::from(config.max_action_results_age));
    Some(completed.checked_add(age).unwrap_or(Timestamp::MAX))
}

/// Forgets ended tasks that are too old or too many, the oldest first, as far as the commit has room. An operation
/// goes with the last of its tasks.
pub(crate) fn prune(tx: &mut Transaction<'_>) {
    while tx.has_room(RESERVE) && prune_at(&tx.state).is_some_and(|at| at <= tx.now()) {
        let Some((_, id)) = tx.state.ended_tasks().next().copied() else { return };
        forget(tx, id);
    }
}

fn forget(tx: &mut Transaction<'_>, id: TaskId) {
    let operation = tx.state.task(&id).map(|task| task.operation);
    tx.delete(ModelKey::Task(id));
    let Some(operation) = operation.and_then(|id| tx.state.operation(&id).cloned()) else { return };
    if operation.tasks.iter().all(|task| tx.state.task(task).is_none()) {
        tx.delete(ModelKey::ActionOperation(operation.id));
    }
}
