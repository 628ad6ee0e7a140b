//! The rules about queued hooks and config-changed.

use periapt_host_api::{
    Timestamp,
    event::Event,
    record::{HookStep, Operation},
};

use super::{secrets, storage};
use crate::{Decision, later, progress, relation, subject::Subject};

/// Runs the queued hook, unless it is the install of a dying unit (B04).
pub(super) fn queued_hook(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let Operation::Hook { event, step: HookStep::Queued } = &subject.record().operation else {
        return None;
    };
    (subject.alive() || *event != Event::Install).then(|| run_unless_moot(subject, event, now))
}

/// Runs config-changed if settings, trust or addresses have changed, or if the unit never started; start follows.
pub(super) fn config_change(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    let due = subject.hashes() != record.seen || !record.started;
    due.then(|| subject.run(Event::ConfigChanged, now))
}

/// Runs a hook that was recorded as due or failed, or skips it if it has lost its meaning: leadership was lost before
/// leader-elected ran (K05), or the relation is gone from the model (U-16). A batch gets its present content (U-30).
pub(super) fn run_unless_moot(subject: &Subject<'_>, event: &Event, now: Timestamp) -> Decision {
    let deposed = *event == Event::LeaderElected && !subject.record().leader;
    let moot = relation::moot(subject, event)
        || storage::moot(subject, event)
        || secrets::moot(subject, event)
        || later::moot(subject, event);
    if deposed || moot {
        return Decision::Commit(Box::new(progress::moot(subject.record(), event)));
    }
    match relation::by_now(subject, event) {
        Some(event) => subject.run(event, now),
        None => Decision::Commit(Box::new(progress::restated(subject.record(), event))),
    }
}
