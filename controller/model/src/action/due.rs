//! The end of the tasks of removed units, and the pruning of completed tasks.

use jiff::SignedDuration;
use periapt_host_api::{TaskId, Timestamp, UnitName, action::TaskStatus};

use super::command;
use crate::{
    entity::{ModelKey, Task},
    root::ModelState,
    transaction::Transaction,
};

/// The message of a task whose unit was removed (L-8).
const UNIT_REMOVED: &str = "unit removed";

/// The most bytes of memory that the completed tasks of one model take, with their parameters. Their messages and
/// results are only in the store. The oldest tasks are pruned first.
const MAX_ENDED_MEMORY: u64 = 64 << 20;

/// The number of entities that one step leaves to the rest of its commit.
const RESERVE: usize = 5;

/// Ends the open tasks of a removed unit while the commit has room, and returns true if none is left (Q06). Pending
/// tasks are cancelled; running ones are aborted, because no agent will report their end.
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

/// Returns the time at which the oldest completed task is to be pruned, or none if there is no such task.
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

/// Prunes completed tasks that are too old or too many, the oldest first, while the commit has room. An operation is
/// deleted with the last of its tasks.
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
