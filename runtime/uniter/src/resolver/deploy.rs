//! The rules about deployments: upgrades and failed deployments (`docs/hook-model.md` 1.10).

use periapt_host_api::{Timestamp, record::Operation};

use crate::{Decision, progress, retry, subject::Subject};

/// Deploys the application's charm if the charm or its resources differ from the unit's (U-36).
pub(super) fn upgrade(subject: &Subject<'_>, _now: Timestamp) -> Option<Decision> {
    (subject.record().charm != Some(subject.application.charm)).then(|| subject.deploy())
}

/// Handles a failed deployment (U-33). Each attempt uses the charm that the application wants at that time
/// (B05).
pub(super) fn failed(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    let Operation::DeployFailed { charm: failed, failure, .. } = &record.operation else {
        return None;
    };
    if !subject.alive() && !record.installed {
        return None; // The unit is torn down without a hook (U-40).
    }
    let wanted = subject.application.charm;
    // An operator refreshed back to the unit's archive. That is a new refresh, so its version is another one.
    let went_back = wanted != *failed && record.charm.is_some_and(|runs| runs.digest == wanted.digest);
    if subject.unit.resolved.is_some() || went_back {
        let mut progress = progress::put_failed_deploy_aside(record);
        progress.transitions.clear_resolved = subject.unit.resolved.is_some();
        return Some(Decision::Commit(Box::new(progress)));
    }
    let replaced = wanted != *failed && (subject.application.force_charm || record.charm.is_none());
    let retry_at = retry::due(failure, &subject.model.config, now);
    Some(if replaced || retry_at.is_some_and(|at| at <= now) {
        subject.deploy()
    } else {
        Decision::Wait { wake_at: retry_at }
    })
}
