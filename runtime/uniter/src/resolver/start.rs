//! The first hook of a unit's life, and the first after its host's rebirth.

use periapt_host_api::{Timestamp, event::Event};

use crate::{Decision, subject::Subject};

/// A new unit brings its charm into place, which queues install (B06); this rule finds install itself due only if
/// nothing queued it.
pub(super) fn install(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    match (record.installed, record.charm) {
        (true, _) => None,
        (false, None) => Some(subject.deploy()),
        (false, Some(_)) => Some(subject.run(Event::Install, now)),
    }
}

/// A started unit whose host booted since runs `start`, once per boot (U-43). A unit that has not started yet
/// takes note of the boot when it starts.
pub(super) fn after_reboot(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    let boot = subject.boot_id()?;
    let rebooted = record.started && subject.at_rest() && record.boot_id.as_deref() != Some(boot);
    rebooted.then(|| subject.run(Event::Start, now))
}
