//! Winding up a dying unit (`docs/hook-model.md` 1.7 rules 1 and 17a, 1.12).

use periapt_host_api::{Timestamp, event::Event, record::Operation, status::Life};

use crate::{Decision, Progress, relation, subject::Subject};

/// A dead unit is left alone, whatever was in progress. One whose remove hook was committed is terminated.
pub(super) fn dead_or_wound_up(subject: &Subject<'_>, _now: Timestamp) -> Option<Decision> {
    match subject.unit.life {
        Life::Dead => Some(Decision::Stop),
        _ if subject.record().removed => Some(terminate(subject)),
        _ => None,
    }
}

/// Storage was let go before. Relations depart and break, then stop, then remove (U-23). A unit that never installed runs nothing (U-40).
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

/// All is wound up: the unit becomes dead, once its subordinates are gone (U-39).
fn terminate(subject: &Subject<'_>) -> Decision {
    if !subject.unit.subordinates.is_empty() {
        return Decision::Wait { wake_at: None };
    }
    let mut progress = Progress::after(subject.record());
    progress.record.operation = Operation::Continue;
    progress.transitions.terminate = true;
    Decision::Commit(Box::new(progress))
}
