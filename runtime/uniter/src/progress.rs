//! A unit's record after an operation (`docs/hook-model.md` 1.5, 1.6).

use periapt_host_api::{
    OperationId, Timestamp,
    record::{Begun, HookStep, Operation},
};

use crate::{HookEnd, HookRun, Jitter, Progress, retry, status, update_status};

mod deploy;
mod follow;

pub(crate) use deploy::put_failed_deploy_aside;
pub use deploy::{deploy_failed, deployed};
pub(crate) use follow::{drop_moot, restated, skipped};

/// Returns the commit before a run that [must begin](HookRun::must_begin), and the run after it. The record of the
/// attempt shows later that an interrupted run had started (`docs/design/storage.md`).
pub fn begin(run: &HookRun) -> (Progress, HookRun) {
    let mut progress = Progress::after(&run.record);
    let begun = Begun { event: run.event.clone(), attempt: run.attempt, operation: run.operation };
    progress.record.begun = Some(begun);
    let run = HookRun { record: progress.record.clone(), ..run.clone() };
    (progress, run)
}

/// Returns the commit after a hook: the unit's progress after success, the failure otherwise. The jitter is for the
/// back-off or the update-status timer, whichever is armed.
pub fn hook_ended(run: &HookRun, end: HookEnd, now: Timestamp, jitter: Jitter) -> Progress {
    let mut progress = Progress::after(&run.record);
    match end {
        HookEnd::Handled { status_set } | HookEnd::Unhandled { status_set } => {
            progress.record.status_set |= status_set;
            follow::commit(&mut progress, &run.event, &run.seen);
            update_status::rearm(&mut progress.record, run, now, jitter);
            progress.early.extend(status::after_hook(&run.event, &progress.record));
        }
        HookEnd::Failed { message, status_set } => {
            progress.record.status_set |= status_set;
            let failure = retry::failure(&message, run.failures, now, jitter);
            if let Some(begun) = &mut progress.record.begun {
                // The next attempt is a new run.
                begun.operation = OperationId(progress.record.seq);
            }
            progress.early.push(status::failure_log(
                &run.unit,
                &format!("hook \"{}\"", run.event),
                &failure.message,
            ));
            progress.early.push(status::hook_failed(&run.event));
            progress.record.operation =
                Operation::Hook { event: run.event.clone(), step: HookStep::Failed(failure) };
        }
    }
    progress
}
