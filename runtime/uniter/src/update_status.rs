//! The timer of update-status (`docs/hook-model.md` 1.11, U-20).

use periapt_host_api::{Timestamp, event::Event, record::UnitRecord};

use crate::{Decision, HookRun, Jitter, Progress, jitter::later, resolve_input::ResolveInput};

/// The largest change of a period by jitter, in per cent.
const JITTER_PER_CENT: u64 = 20;

/// Returns the time of the hook for a timer that is armed `now`; none if it is off.
fn due_after(now: Timestamp, interval_seconds: u32, jitter: Jitter) -> Option<Timestamp> {
    let interval = u64::from(interval_seconds) * 1000;
    (interval > 0).then(|| later(now, jitter.spread(interval, JITTER_PER_CENT)))
}

/// Runs update-status if its timer fired. Sets the timer again if the interval changed so much that the present time is
/// out of range. This is the last rule of the resolver.
pub(crate) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    if !record.started {
        return None;
    }
    let interval = input.update_status_interval();
    let latest = due_after(now, interval, Jitter::MOST);
    match (record.update_status_due, latest) {
        (None, None) => None,
        (Some(due), Some(latest)) if due <= latest => {
            (due <= now).then(|| input.run(Event::UpdateStatus, now))
        }
        _ => {
            let mut progress = Progress::after(record);
            progress.record.update_status_due =
                due_after(now, interval, Jitter::of_unit(&input.unit.name, now));
            Some(Decision::Commit(Box::new(progress)))
        }
    }
}

/// Returns the update-status hooks that this hook absorbs, for people. Any hook counts as a tick (U-20), and several
/// missed periods leave one tick.
pub(crate) fn absorbed(input: &ResolveInput<'_>, event: &Event, now: Timestamp) -> Option<String> {
    let interval = u64::from(input.update_status_interval()).saturating_mul(1000);
    let due = input.record().update_status_due.filter(|due| *due <= now && interval > 0)?;
    let overdue = u64::try_from(now.as_millisecond().saturating_sub(due.as_millisecond())).unwrap_or(0);
    // Jitter lengthens a period by up to a fifth. Only a longer time is surely more than one period.
    let longest = Jitter::MOST.spread(interval, JITTER_PER_CENT).max(1);
    let missed = overdue / longest;
    match (event, missed) {
        (Event::UpdateStatus, 0) => None,
        (Event::UpdateStatus, 1) => Some("1 update-status that was missed".to_owned()),
        (Event::UpdateStatus, missed) => Some(format!("{missed} update-status that were missed")),
        // A dying unit has no status to report.
        _ if !input.alive() => None,
        (_, 0) => Some("update-status, which was due".to_owned()),
        (_, missed) => Some(format!("update-status, which was due, and {missed} that were missed")),
    }
}

/// Arms the timer with a committed hook: when the unit starts, and when the timer fired before the hook's decision,
/// because any hook counts as a tick (U-20). Other hooks leave the timer unchanged.
pub(crate) fn rearm(record: &mut UnitRecord, run: &HookRun, now: Timestamp, jitter: Jitter) {
    let fired = match record.update_status_due {
        Some(due) => due <= run.decided_at,
        None => run.event == Event::Start,
    };
    if fired {
        record.update_status_due = due_after(now, run.seen.update_status_interval, jitter);
    }
}
