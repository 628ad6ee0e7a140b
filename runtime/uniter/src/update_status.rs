//! The timer of update-status (`hook-model.md` 1.11, U-20).

use periapt_host_api::{Timestamp, event::Event, record::UnitRecord};

use crate::{Decision, HookRun, Jitter, Progress, jitter::later, subject::Subject};

/// How far each period is moved, in per cent.
const JITTER_PER_CENT: u64 = 20;

/// When the hook is due after a timer that is armed `now`; none if it is off.
fn due_after(now: Timestamp, interval_seconds: u32, jitter: Jitter) -> Option<Timestamp> {
    let interval = u64::from(interval_seconds) * 1000;
    (interval > 0).then(|| later(now, jitter.spread(interval, JITTER_PER_CENT)))
}

/// The lowest rule of the resolver: run it if its timer fired, or set the timer right after the interval
/// changed so much that no timer of the present one could stand where this one stands.
pub(crate) fn next(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    if !record.started {
        return None;
    }
    let interval = subject.update_status_interval();
    let latest = due_after(now, interval, Jitter::MOST);
    match (record.update_status_due, latest) {
        (None, None) => None,
        (Some(due), Some(latest)) if due <= latest => {
            (due <= now).then(|| subject.run(Event::UpdateStatus, now))
        }
        _ => {
            let mut progress = Progress::after(record);
            progress.record.update_status_due =
                due_after(now, interval, Jitter::of_unit(&subject.unit.name, now));
            Some(Decision::Commit(Box::new(progress)))
        }
    }
}

/// Arms the timer with a committed hook: when the unit started, and when the timer had fired before the hook was
/// decided, since any hook counts as its tick (U-20). Otherwise hooks do not touch it.
pub(crate) fn rearm(record: &mut UnitRecord, run: &HookRun, now: Timestamp, jitter: Jitter) {
    let fired = match record.update_status_due {
        Some(due) => due <= run.decided_at,
        None => run.event == Event::Start,
    };
    if fired {
        record.update_status_due = due_after(now, run.seen.update_status_interval, jitter);
    }
}
