//! Bringing a charm into place: upgrades, and what could not be brought (`docs/hook-model.md` 1.10).

use periapt_host_api::{Timestamp, record::Operation};

use crate::{Decision, progress, retry, subject::Subject};

/// The application's charm, or the charm's resources, are not those that the unit runs (U-36).
pub(super) fn upgrade(subject: &Subject<'_>, _now: Timestamp) -> Option<Decision> {
    (subject.record().charm != Some(subject.application.charm)).then(|| subject.deploy())
}

/// A charm could not be brought into place (U-33). Whatever makes the unit try again, it tries the charm that is
/// wanted by then (B05).
pub(super) fn failed(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    let Operation::DeployFailed { charm: failed, failure, .. } = &record.operation else {
        return None;
    };
    if !subject.alive() && !record.installed {
        return None; // Torn down without a hook (U-40).
    }
    let wanted = subject.application.charm;
    // An operator went back to the archive that runs: by another refresh, so that its version is another one.
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
