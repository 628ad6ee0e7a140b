//! What follows a charm that was, or could not be, brought into place (`docs/hook-model.md` 1.10).

use periapt_host_api::{
    Timestamp,
    event::Event,
    record::{HookStep, InterruptedHook, Operation, UnitRecord},
};

use crate::{DeployRun, Jitter, Progress, retry, status};

/// The charm is in place: install follows, or upgrade-charm, or the failed hook that a forced upgrade put aside,
/// under the new code (U-35).
pub fn deployed(run: &DeployRun) -> Progress {
    let mut progress = Progress::after(&run.record);
    progress.record.charm = Some(run.charm);
    progress.transitions.charm = Some(run.charm);
    let queued = if run.record.installed { Event::UpgradeCharm } else { Event::Install };
    match interrupted(&run.record.operation) {
        Some(hook) => go_back(&mut progress, hook),
        None => progress.record.operation = Operation::Hook { event: queued, step: HookStep::Queued },
    }
    progress
}

/// The charm could not be brought into place: the unit is in error, tries again with back-off, and takes
/// `resolved` or a newer charm as a reason to try at once (U-33).
pub fn deploy_failed(run: &DeployRun, message: &str, now: Timestamp, jitter: Jitter) -> Progress {
    let mut progress = Progress::after(&run.record);
    let earlier = match &run.record.operation {
        Operation::DeployFailed { charm, failure, .. } if *charm == run.charm => failure.attempts,
        _ => 0,
    };
    let failure = retry::failure(message, earlier, now, jitter);
    let what = if run.is_upgrade() { "charm upgrade" } else { "charm deployment" };
    progress.early.push(status::failure_log(&run.unit, what, &failure.message));
    progress.early.push(status::deploy_failed(run.is_upgrade(), &failure.message));
    progress.record.operation = Operation::DeployFailed {
        charm: run.charm,
        failure,
        interrupted: interrupted(&run.record.operation).map(Box::new),
    };
    progress
}

/// Forgets a failed deployment: what it interrupted is in progress again, if anything was.
pub(crate) fn put_failed_deploy_aside(record: &UnitRecord) -> Progress {
    let mut progress = Progress::after(record);
    match interrupted(&record.operation) {
        Some(hook) => go_back(&mut progress, hook),
        None => progress.record.operation = Operation::Continue,
    }
    progress
}

/// The failed hook that an upgrade puts aside, or has put aside.
fn interrupted(operation: &Operation) -> Option<InterruptedHook> {
    match operation {
        Operation::Hook { event, step: HookStep::Failed(failure) } => {
            Some(InterruptedHook { event: event.clone(), failure: failure.clone() })
        }
        Operation::DeployFailed { interrupted, .. } => interrupted.as_deref().cloned(),
        _ => None,
    }
}

fn go_back(progress: &mut Progress, hook: InterruptedHook) {
    progress.early.push(status::hook_failed(&hook.event));
    progress.record.operation = Operation::Hook { event: hook.event, step: HookStep::Failed(hook.failure) };
}
