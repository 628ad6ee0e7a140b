//! The record after a failed hook (`docs/hook-model.md` 1.9).

use periapt_host_api::{
    OperationId, Timestamp, UnitName,
    event::Event,
    record::{HookFailure, HookStep, Operation, UnitRecord},
};

use crate::{Jitter, Progress, retry, status};

/// The message of a hook that was cut short beside workloads and does not run again by itself.
const CUT_SHORT: &str = "it was cut short after it may have changed its workload";

/// Records the failure of a hook, with its line in the log and the status of the agent.
pub(crate) fn fail(progress: &mut Progress, unit: &UnitName, event: &Event, failure: HookFailure) {
    let record = &mut progress.record;
    if let Some(begun) = &mut record.begun {
        // The next attempt is a new run.
        begun.operation = OperationId(record.seq);
        begun.beside_workloads = false;
    }
    progress.early.push(status::failure_log(unit, &format!("hook \"{event}\""), &failure.message));
    progress.early.push(status::hook_failed(event, &failure));
    record.operation = Operation::Hook { event: event.clone(), step: HookStep::Failed(failure) };
}

/// Returns the step that puts a unit in error whose hook was cut short beside workloads.
pub(crate) fn cut_short(unit: &UnitName, record: &UnitRecord, event: &Event, now: Timestamp) -> Progress {
    let earlier = match &record.operation {
        Operation::Hook { event: failed, step: HookStep::Failed(failure) } if event.is_attempt_of(failed) => {
            failure.attempts
        }
        _ => 0,
    };
    let failure = retry::failure(CUT_SHORT, earlier, now, Jitter::NONE);
    let mut progress = Progress::after(record);
    fail(&mut progress, unit, event, HookFailure { cut_short: true, ..failure });
    progress
}
