//! The timer of update-status (`docs/hook-model.md` 1.11, U-20).

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

/// What a hook makes of update-status that is due, for people: any hook counts as its tick (U-20), and of several periods
/// that passed while no hook could run one tick is left.
pub(crate) fn absorbed(subject: &Subject<'_>, event: &Event, now: Timestamp) -> Option<String> {
    let interval = u64::from(subject.update_status_interval()).saturating_mul(1000);
    let due = subject.record().update_status_due.filter(|due| *due <= now && interval > 0)?;
    let overdue = u64::try_from(now.as_millisecond().saturating_sub(due.as_millisecond())).unwrap_or(0);
    // A period is moved by up to a fifth: only what is longer is surely more than one.
    let longest = Jitter::MOST.spread(interval, JITTER_PER_CENT).max(1);
    let missed = overdue / longest;
    match (event, missed) {
        (Event::UpdateStatus, 0) => None,
        (Event::UpdateStatus, 1) => Some("1 update-status that was missed".to_owned()),
        (Event::UpdateStatus, missed) => Some(format!("{missed} update-status that were missed")),
        // A unit that goes has no status to tell.
        _ if !subject.alive() => None,
        (_, 0) => Some("update-status, which was due".to_owned()),
        (_, missed) => Some(format!("update-status, which was due, and {missed} that were missed")),
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
