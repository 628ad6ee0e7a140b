//! The rules about deployments: upgrades and failed deployments (`docs/hook-model.md` 1.10).

use periapt_host_api::{Timestamp, record::Operation};

use crate::{Decision, progress, resolve_input::ResolveInput, retry};

/// Deploys the application's charm if the charm or its resources differ from the unit's (U-36).
pub(super) fn upgrade(input: &ResolveInput<'_>, _now: Timestamp) -> Option<Decision> {
    (input.record().charm != Some(input.application.charm)).then(|| input.deploy())
}

/// Handles a failed deployment (U-33). Each attempt uses the charm that the application wants at that time
/// (B05).
pub(super) fn failed(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let Operation::DeployFailed { charm: failed, failure, .. } = &record.operation else {
        return None;
    };
    if !input.alive() && !record.installed {
        return None; // Torn down without a hook (U-40).
    }
    let wanted = input.application.charm;
    // An operator refreshed back to the unit's archive. That is a new refresh, so its version is another one.
    let went_back = wanted != *failed && record.charm.is_some_and(|runs| runs.digest == wanted.digest);
    if input.unit.resolved.is_some() || went_back {
        let mut progress = progress::put_failed_deploy_aside(record);
        progress.transitions.clear_resolved = input.unit.resolved.is_some();
        return Some(Decision::Commit(Box::new(progress)));
    }
    let replaced = wanted != *failed && (input.application.force_charm || record.charm.is_none());
    let retry_at = retry::due(failure, &input.model.config, now);
    Some(if replaced || retry_at.is_some_and(|at| at <= now) {
        input.deploy()
    } else {
        Decision::Wait { wake_at: retry_at }
    })
}
