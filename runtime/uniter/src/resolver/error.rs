//! The rules about failed hooks: retry, resolve, or wait (`docs/hook-model.md` 1.9).

use periapt_host_api::{
    Timestamp,
    command::ResolveMode,
    event::Event,
    record::{HookStep, Operation},
    settings::WorkloadCrash,
};

use super::{ordinary::run_unless_moot, workloads};
use crate::{Decision, Progress, later, progress, relation, resolve_input::ResolveInput, retry};

/// Handles a failed hook. No other hook runs until it is committed, retried or skipped (U-29).
pub(super) fn failed_hook(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let Operation::Hook { event, step: HookStep::Failed(failure) } = &record.operation else {
        return None;
    };
    // The hook is skipped at once, without waiting for its next attempt (U-16).
    if has_lost_its_meaning(input, event) {
        return Some(Decision::Commit(Box::new(progress::drop_moot(record, event))));
    }
    // A forced upgrade puts the hook aside. It runs again under the new code (U-35).
    if input.application.force_charm && record.charm != Some(input.application.charm) {
        return Some(input.deploy());
    }
    let only_by_operators = failure.cut_short && input.application.workload_crash == WorkloadCrash::Error;
    let retry_at = retry::due(failure, &input.model.config, now).filter(|_| !only_by_operators);
    Some(match input.unit.resolved {
        Some(ResolveMode::Retry) => run_again(input, event),
        Some(ResolveMode::NoRetry) => {
            Decision::Commit(Box::new(progress::skipped(record, event, &input.seen(event))))
        }
        None if retry_at.is_some_and(|at| at <= now) => run_unless_moot(input, event, now),
        None => Decision::Wait { wake_at: retry_at },
    })
}

/// Handles a hook that was cut short beside workloads: it runs again, whether its reason is still there or not, because it
/// may have changed them; or it puts the unit in error, if the application wants that. No other hook runs before: it would
/// hide that this one was cut short.
pub(super) fn cut_short(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let event = &record.begun.as_ref().filter(|begun| begun.beside_workloads)?.event;
    let runs_hooks = input.alive() || record.installed;
    if !runs_hooks || has_lost_its_meaning(input, event) {
        return None;
    }
    let crash = input.application.workload_crash;
    let commit = |progress| Some(Decision::Commit(Box::new(progress)));
    match &record.operation {
        Operation::Continue if crash == WorkloadCrash::Retry => commit(progress::queued(record, event)),
        // It runs again by itself.
        Operation::Hook { .. } if crash == WorkloadCrash::Retry => None,
        Operation::Continue => commit(progress::cut_short(&input.unit.name, record, event, now)),
        Operation::Hook { event: latest, .. } if event.is_attempt_of(latest) => {
            commit(progress::cut_short(&input.unit.name, record, event, now))
        }
        // The application wanted the hook to run again when the unit came back, and the unit has gone on since.
        Operation::Hook { .. } | Operation::DeployFailed { .. } => None,
    }
}

/// Returns true if a failed hook is not to run any more: an operator cancelled its event or removed its relation by
/// force, the charm lost the container, or the start of a notice has ended.
fn has_lost_its_meaning(input: &ResolveInput<'_>, event: &Event) -> bool {
    later::is_moot(input, event) || relation::is_moot(input, event) || workloads::is_moot(input, event)
}

/// Clears the flag before the hook runs, so that it serves this failure only (U-27), and resets the back-off (C11).
fn run_again(input: &ResolveInput<'_>, event: &Event) -> Decision {
    let mut progress = progress::queued(input.record(), event);
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
