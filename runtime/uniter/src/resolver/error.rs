//! The rules about failed hooks: retry, resolve, or wait (`docs/hook-model.md` 1.9).

use periapt_host_api::{
    Timestamp,
    command::ResolveMode,
    event::Event,
    record::{HookStep, Operation},
};

use super::{ordinary::run_unless_moot, workloads};
use crate::{Decision, Progress, later, progress, relation, resolve_input::ResolveInput, retry};

/// Handles a failed hook. No other hook runs until it is committed, retried or skipped (U-29).
pub(super) fn failed_hook(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let Operation::Hook { event, step: HookStep::Failed(failure) } = &record.operation else {
        return None;
    };
    // The operator cancelled the event or removed its relation by force, or the charm lost the container. The hook is skipped at once, without waiting
    // for its next attempt (U-16).
    if later::is_moot(input, event) || relation::is_moot(input, event) || workloads::is_moot(input, event) {
        return Some(Decision::Commit(Box::new(progress::drop_moot(record, event))));
    }
    // A forced upgrade puts the hook aside. It runs again under the new code (U-35).
    if input.application.force_charm && record.charm != Some(input.application.charm) {
        return Some(input.deploy());
    }
    let retry_at = retry::due(failure, &input.model.config, now);
    Some(match input.unit.resolved {
        Some(ResolveMode::Retry) => run_again(input, event),
        Some(ResolveMode::NoRetry) => {
            Decision::Commit(Box::new(progress::skipped(record, event, &input.seen(event))))
        }
        None if retry_at.is_some_and(|at| at <= now) => run_unless_moot(input, event, now),
        None => Decision::Wait { wake_at: retry_at },
    })
}

/// Clears the flag before the hook runs, so that it serves this failure only (U-27), and resets the back-off (C11).
fn run_again(input: &ResolveInput<'_>, event: &Event) -> Decision {
    let mut progress = Progress::after(input.record());
    progress.record.operation = Operation::Hook { event: event.clone(), step: HookStep::Queued };
    progress.transitions.clear_resolved = true;
    Decision::Commit(Box::new(progress))
}

/// Clears a `resolved` that came during a successful run of the hook, so that it does not serve a later failure (U-27).
pub(super) fn answer_without_failure(input: &ResolveInput<'_>, _now: Timestamp) -> Option<Decision> {
    let waits = match input.record().operation {
        Operation::Hook { step: HookStep::Failed(_), .. } | Operation::DeployFailed { .. } => true,
        Operation::Hook { step: HookStep::Queued, .. } | Operation::Continue => false,
    };
    if waits || input.unit.resolved.is_none() {
        return None;
    }
    let mut progress = Progress::after(input.record());
    progress.transitions.clear_resolved = true;
    Some(Decision::Commit(Box::new(progress)))
}
