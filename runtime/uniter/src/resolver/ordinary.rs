//! The rules about queued hooks and config-changed.

use periapt_host_api::{
    Timestamp,
    event::Event,
    record::{HookStep, Operation},
};

use super::{secrets, storage, workloads};
use crate::{Decision, later, progress, relation, resolve_input::ResolveInput};

/// Runs the queued hook, unless it is the install of a dying unit (B04).
pub(super) fn queued_hook(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let Operation::Hook { event, step: HookStep::Queued } = &input.record().operation else {
        return None;
    };
    (input.alive() || *event != Event::Install).then(|| run_unless_moot(input, event, now))
}

/// Runs config-changed if settings, trust or addresses have changed, or if the unit never started; start follows.
pub(super) fn config_change(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let due = input.hashes() != record.seen || !record.started;
    due.then(|| input.run(Event::ConfigChanged, now))
}

/// Runs a hook that was recorded as due or failed, or skips it if it has lost its meaning: leadership was lost before
/// leader-elected ran (K05), or the relation is gone from the model (U-16). A batch gets its present content (U-30).
pub(super) fn run_unless_moot(input: &ResolveInput<'_>, event: &Event, now: Timestamp) -> Decision {
    let deposed = *event == Event::LeaderElected && !input.record().leader;
    let moot = relation::is_moot(input, event)
        || storage::is_moot(input, event)
        || secrets::is_moot(input, event)
        || later::is_moot(input, event)
        || workloads::is_moot(input, event);
    if deposed || moot {
        return Decision::Commit(Box::new(progress::drop_moot(input.record(), event)));
    }
    match relation::present_form(input, event) {
        Some(event) => input.run(event, now),
        None => Decision::Commit(Box::new(progress::restated(input.record(), event))),
    }
}
