//! What a unit's record is after an operation (`hook-model.md` 1.5, 1.6).

use periapt_host_api::{
    Timestamp,
    record::{HookStep, Operation},
};

use crate::{HookEnd, HookRun, Jitter, Progress, retry, status, update_status};

mod deploy;
mod follow;

pub(crate) use deploy::put_failed_deploy_aside;
pub use deploy::{deploy_failed, deployed};
pub(crate) use follow::{moot, skipped};

/// What to commit after a hook ran: the unit's progress if it succeeded, its failure if not. Jitter is for the
/// back-off or for the update-status timer, whichever is armed.
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
            let earlier = run.attempt.saturating_sub(1);
            let failure = retry::failure(&message, earlier, now, jitter);
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
