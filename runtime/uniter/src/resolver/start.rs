//! The rules about the first hook of a unit, and the first one after a reboot of its host.

use periapt_host_api::{Timestamp, event::Event};

use crate::{Decision, subject::Subject};

/// Deploys the charm of a new unit, which queues install (B06). It runs install itself only if the hook is not
/// queued.
pub(super) fn install(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    match (record.installed, record.charm) {
        (true, _) => None,
        (false, None) => Some(subject.deploy()),
        (false, Some(_)) => Some(subject.run(Event::Install, now)),
    }
}

/// Runs `start` of a started unit after its host has booted, once per boot (U-43). A unit that has not started
/// records the boot when it starts.
pub(super) fn after_reboot(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    let boot = subject.boot_id()?;
    let rebooted = record.started && subject.at_rest() && record.boot_id.as_deref() != Some(boot);
    rebooted.then(|| subject.run(Event::Start, now))
}
