//! The rules about the first hook of a unit, and the first one after a reboot of its host.

use periapt_host_api::{Timestamp, event::Event};

use crate::{Decision, resolve_input::ResolveInput};

/// Deploys the charm of a new unit, which queues install (B06). It runs install itself only if the hook is not
/// queued.
pub(super) fn install(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    match (record.installed, record.charm) {
        (true, _) => None,
        (false, None) => Some(input.deploy()),
        (false, Some(_)) => Some(input.run(Event::Install, now)),
    }
}

/// Runs `start` of a started unit after its host has booted, once per boot (U-43). A unit that has not started
/// records the boot when it starts.
pub(super) fn after_reboot(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    let boot = input.boot_id()?;
    let rebooted = record.started && input.at_rest() && record.boot_id.as_deref() != Some(boot);
    rebooted.then(|| input.run(Event::Start, now))
}
