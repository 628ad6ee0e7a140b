//! The rules about leadership: acceptance, resignation, and the hooks of followers (`docs/hook-model.md` 1.7 rule 8).

use periapt_host_api::{
    Timestamp,
    event::Event,
    record::{HookStep, Operation},
};

use crate::{Decision, Progress, resolve_input::ResolveInput};

/// Handles leadership. A unit resigns during any operation; it accepts, and learns of changed settings, only at rest.
/// A dying unit only resigns (U-41, K07).
pub(super) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let record = input.record();
    if !record.installed {
        return None;
    }
    let leads = input.leads() && input.alive();
    match (record.leader, leads) {
        (true, false) => Some(resign(input)),
        (false, true) if input.at_rest() => Some(accept(input)),
        (false, false) if input.at_rest() && input.alive() && unheard(input) => follow(input, now),
        _ => None,
    }
}

/// Runs leader-settings-changed for a unit that does not lead. Without a leader there are unanswered claims, perhaps
/// this unit's. A unit that never started waits for the answer, because leader-elected or leader-settings-changed
/// precedes its first config-changed (U-4, 1.8): each living unit's agent claims until some unit leads, and a dying
/// unit does not wait. A started unit continues with its other hooks.
fn follow(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    match (&input.application.leader, input.record().started) {
        (Some(_), _) => Some(input.run(Event::LeaderSettingsChanged, now)),
        (None, false) => Some(Decision::Wait { wake_at: None }),
        (None, true) => None,
    }
}

fn unheard(input: &ResolveInput<'_>) -> bool {
    input.record().leader_settings_version != Some(input.application.leader_settings_version)
}

fn accept(input: &ResolveInput<'_>) -> Decision {
    let mut progress = Progress::after(input.record());
    progress.record.leader = true;
    progress.record.operation = Operation::Hook { event: Event::LeaderElected, step: HookStep::Queued };
    Decision::Commit(Box::new(progress))
}

/// Resigns. The unit then runs leader-settings-changed, even if the settings have not changed (1.5, D-7).
fn resign(input: &ResolveInput<'_>) -> Decision {
    let mut progress = Progress::after(input.record());
    progress.record.leader = false;
    progress.record.leader_settings_version = None;
    Decision::Commit(Box::new(progress))
}
