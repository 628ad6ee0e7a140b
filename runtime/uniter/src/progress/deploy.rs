//! The record after a deployment, successful or not (`docs/hook-model.md` 1.10).

use periapt_host_api::{
    Timestamp,
    event::Event,
    record::{HookStep, InterruptedHook, Operation, UnitRecord},
};

use crate::{DeployKind, DeployRun, Jitter, Progress, retry, status};

/// Returns the commit after a successful deployment. Install or upgrade-charm follows, or under the new code the
/// failed hook that a forced upgrade put aside (U-35).
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

/// Returns the commit after a failed deployment: the unit is in error and retries with back-off, or at once
/// after `resolved` or with a newer charm (U-33).
pub fn deploy_failed(run: &DeployRun, message: &str, now: Timestamp, jitter: Jitter) -> Progress {
    let mut progress = Progress::after(&run.record);
    let earlier = match &run.record.operation {
        Operation::DeployFailed { charm, failure, .. } if *charm == run.charm => failure.attempts,
        _ => 0,
    };
    let failure = retry::failure(message, earlier, now, jitter);
    let kind = DeployKind::of(&run.record);
    let what = match kind {
        DeployKind::First => "charm deployment",
        DeployKind::Upgrade => "charm upgrade",
    };
    progress.early.push(status::failure_log(&run.unit, what, &failure.message));
    progress.early.push(status::deploy_failed(kind, &failure.message));
    progress.record.operation = Operation::DeployFailed {
        charm: run.charm,
        failure,
        interrupted: interrupted(&run.record.operation).map(Box::new),
    };
    progress
}

/// Returns the step that drops a failed deployment and restores the hook that it interrupted, if any.
pub(crate) fn put_failed_deploy_aside(record: &UnitRecord) -> Progress {
    let mut progress = Progress::after(record);
    match interrupted(&record.operation) {
        Some(hook) => go_back(&mut progress, hook),
        None => progress.record.operation = Operation::Continue,
    }
    progress
}

/// Returns the failed hook that an upgrade puts aside, or has put aside.
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
    progress.early.push(status::hook_failed(&hook.event, &hook.failure));
    progress.record.operation = Operation::Hook { event: hook.event, step: HookStep::Failed(hook.failure) };
}
