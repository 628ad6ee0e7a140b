//! The rules about dying units (`docs/hook-model.md` 1.7 rules 1 and 17a, 1.12).

use periapt_host_api::{Timestamp, event::Event, record::Operation, status::Life};

use crate::{Decision, Progress, relation, resolve_input::ResolveInput};

/// Stops managing a dead unit during any operation. A unit with a committed remove hook is terminated.
pub(super) fn dead_or_wound_up(input: &ResolveInput<'_>, _now: Timestamp) -> Option<Decision> {
    match input.unit.life {
        Life::Dead => Some(Decision::Stop),
        _ if input.record().removed => Some(terminate(input)),
        _ => None,
    }
}

/// Tears down a dying unit: its relations depart and break, then stop, then remove (U-23). Storage was detached before.
/// A unit that never installed runs no hook (U-40).
pub(super) fn teardown(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    if input.alive() {
        return None;
    }
    let record = input.record();
    if let Some(decision) = relation::next(input, now) {
        return Some(decision);
    }
    Some(if record.started && !record.stopped {
        input.run(Event::Stop, now)
    } else if record.installed {
        input.run(Event::Remove, now)
    } else {
        terminate(input)
    })
}

/// Terminates the unit once its subordinates are gone (U-39).
fn terminate(input: &ResolveInput<'_>) -> Decision {
    if !input.unit.subordinates.is_empty() {
        return Decision::Wait { wake_at: None };
    }
    let mut progress = Progress::after(input.record());
    progress.record.operation = Operation::Continue;
    progress.transitions.terminate = true;
    Decision::Commit(Box::new(progress))
}
