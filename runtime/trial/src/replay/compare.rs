//! The comparison of a replayed run with its record.

use periapt_hook::{RecordedBudgets, ReplayedCalls};
use periapt_host_api::journal::{HookCosts, HookOutcome, JournalRecord};

use super::difference::ReplayDifference;

/// The beginning of a hook's failure whose effects the controller refused.
const EFFECTS_REFUSED: &str = "the hook's effects were refused: ";

/// The failure of an action whose effects the controller refused.
const CHANGES_REFUSED: &str = "committing requested changes failed";

/// The failures of a hook and of an action that were stopped.
const STOPPED: [&str; 2] = ["it was stopped", "action cancelled"];

/// The engine here, beside the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Engine {
    Same,
    Other,
}

/// A run that was replayed.
#[derive(Debug, Clone)]
pub(super) struct ReplayedRun {
    pub(super) outcome: HookOutcome,
    pub(super) costs: HookCosts,
    pub(super) calls: ReplayedCalls,
}

/// Returns the first difference of a replay from its record, and notes what bounds the comparison.
pub(super) fn compare(
    record: &JournalRecord,
    budgets: &RecordedBudgets,
    ran: &ReplayedRun,
    engine: &str,
    notes: &mut Vec<String>,
) -> Option<ReplayDifference> {
    let here = if record.engine == engine { Engine::Same } else { Engine::Other };
    if here == Engine::Other {
        notes.push(format!("the engine was {} and is {engine} here: fuel is not compared", record.engine));
    }
    let cut_off = is_cut_off(record, budgets);
    match &ran.calls.difference {
        // Time ended the run, and ends the replay elsewhere.
        Some(difference) if cut_off && (difference.recorded.is_none() || difference.made.is_none()) => {}
        Some(difference) => return Some(ReplayDifference::Call(difference.clone())),
        None => {}
    }
    if cut_off {
        notes.push("the run was cut off: only its calls are compared".to_owned());
        return None;
    }
    if let Some(difference) = outcome(record, &ran.outcome, here, notes) {
        return Some(difference);
    }
    let (recorded, replayed) = (record.costs.host_calls, ran.costs.host_calls);
    if recorded != replayed {
        return Some(ReplayDifference::HostCalls { recorded, replayed });
    }
    let (recorded, replayed) = (record.costs.fuel, ran.costs.fuel);
    (here == Engine::Same && recorded != replayed).then_some(ReplayDifference::Fuel { recorded, replayed })
}

/// Compares the outcomes. An action's recorded message may be the charm's own, and the message of another engine may name
/// other places in the code.
fn outcome(
    record: &JournalRecord,
    replayed: &HookOutcome,
    here: Engine,
    notes: &mut Vec<String>,
) -> Option<ReplayDifference> {
    let is_action = record.event.task().is_some();
    let same = match (&record.outcome, replayed) {
        (HookOutcome::Failed { message: recorded }, HookOutcome::Failed { message }) => {
            is_action || here == Engine::Other || recorded == message
        }
        (HookOutcome::Failed { message }, HookOutcome::Handled | HookOutcome::Unhandled)
            if message.starts_with(EFFECTS_REFUSED) || (is_action && message == CHANGES_REFUSED) =>
        {
            notes.push("the controller refused the hook's effects after the run".to_owned());
            true
        }
        (HookOutcome::Failed { .. }, HookOutcome::Unhandled) => is_action,
        (recorded, replayed) => recorded == replayed,
    };
    let recorded = &record.outcome;
    (!same).then(|| ReplayDifference::Outcome { recorded: recorded.clone(), replayed: replayed.clone() })
}

/// Returns true if time, an operator or the CPU budget ended the run: at a place that no replay finds again.
fn is_cut_off(record: &JournalRecord, budgets: &RecordedBudgets) -> bool {
    let HookOutcome::Failed { message } = &record.outcome else { return false };
    let timed_out = record.costs.wall_us >= budgets.wall_ms.saturating_mul(1_000);
    STOPPED.contains(&message.as_str()) || timed_out || record.costs.fuel >= budgets.fuel
}

#[cfg(test)]
mod tests;
