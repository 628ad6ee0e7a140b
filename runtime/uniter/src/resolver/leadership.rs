//! The rules about leadership: acceptance, resignation, and the hooks of followers (`docs/hook-model.md` 1.7 rule 8).

use periapt_host_api::{
    Timestamp,
    event::Event,
    record::{HookStep, Operation},
};

use crate::{Decision, Progress, subject::Subject};

/// Handles leadership. A unit resigns during any operation; it accepts, and learns of changed settings, only at rest.
/// A dying unit only resigns (U-41, K07).
pub(super) fn next(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    let record = subject.record();
    if !record.installed {
        return None;
    }
    let leads = subject.leads() && subject.alive();
    match (record.leader, leads) {
        (true, false) => Some(resign(subject)),
        (false, true) if subject.at_rest() => Some(accept(subject)),
        (false, false) if subject.at_rest() && subject.alive() && unheard(subject) => follow(subject, now),
        _ => None,
    }
}

/// Runs leader-settings-changed for a unit that does not lead. Without a leader there are unanswered claims, perhaps
/// this unit's. A unit that never started waits for the answer, because leader-elected or leader-settings-changed
/// precedes its first config-changed (U-4, 1.8): each living unit's agent claims until some unit leads, and a dying
/// unit does not wait. A started unit continues with its other hooks.
fn follow(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    match (&subject.application.leader, subject.record().started) {
        (Some(_), _) => Some(subject.run(Event::LeaderSettingsChanged, now)),
        (None, false) => Some(Decision::Wait { wake_at: None }),
        (None, true) => None,
    }
}

fn unheard(subject: &Subject<'_>) -> bool {
    subject.record().leader_settings_version != Some(subject.application.leader_settings_version)
}

fn accept(subject: &Subject<'_>) -> Decision {
    let mut progress = Progress::after(subject.record());
    progress.record.leader = true;
    progress.record.operation = Operation::Hook { event: Event::LeaderElected, step: HookStep::Queued };
    Decision::Commit(Box::new(progress))
}

/// Resigns. The unit then runs leader-settings-changed, even if the settings have not changed (1.5, D-7).
fn resign(subject: &Subject<'_>) -> Decision {
    let mut progress = Progress::after(subject.record());
    progress.record.leader = false;
    progress.record.leader_settings_version = None;
    Decision::Commit(Box::new(progress))
}
