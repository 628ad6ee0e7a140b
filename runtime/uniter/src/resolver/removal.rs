//! The rules about dying units (`docs/hook-model.md` 1.7 rules 1 and 17a, 1.12).

use periapt_host_api::{Timestamp, event::Event, record::Operation, status::Life};

use crate::{Decision, Progress, relation, subject::Subject};

/// Stops managing a dead unit during any operation. A unit with a committed remove hook is terminated.
pub(super) fn dead_or_wound_up(subject: &Subject<'_>, _now: Timestamp) -> Option<Decision> {
    match subject.unit.life {
        Life::Dead => Some(Decision::Stop),
        _ if subject.record().removed => Some(terminate(subject)),
        _ => None,
    }
}

/// Tears down a dying unit: its relations depart and break, then stop, then remove (U-23). Storage was detached before.
/// A unit that never installed runs no hook (U-40).
pub(super) fn teardown(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    if subject.alive() {
        return None;
    }
    let record = subject.record();
    if let Some(decision) = relation::next(subject, now) {
        return Some(decision);
    }
    Some(if record.started && !record.stopped {
        subject.run(Event::Stop, now)
    } else if record.installed {
        subject.run(Event::Remove, now)
    } else {
        terminate(subject)
    })
}

/// Terminates the unit once its subordinates are gone (U-39).
fn terminate(subject: &Subject<'_>) -> Decision {
    if !subject.unit.subordinates.is_empty() {
        return Decision::Wait { wake_at: None };
    }
    let mut progress = Progress::after(subject.record());
    progress.record.operation = Operation::Continue;
    progress.transitions.terminate = true;
    Decision::Commit(Box::new(progress))
}
