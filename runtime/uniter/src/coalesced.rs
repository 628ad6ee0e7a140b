//! What a hook absorbs, told to people (`hook-model.md` section 0, "what was merged or skipped").

use std::fmt::Display;

use periapt_host_api::{event::Event, relation::BagOwner};

use crate::subject::Subject;

/// What a run of this event merges into one hook, or makes moot. Each committed change of a bag or of the leader
/// settings raises its version by one, so the difference counts the changes.
pub(crate) fn by(subject: &Subject<'_>, event: &Event) -> Vec<String> {
    let record = subject.record();
    let text = match event {
        Event::LeaderSettingsChanged => {
            let now = subject.application.leader_settings_version;
            let seen = record.leader_settings_version.unwrap_or(now);
            merged(seen, now, "the leader settings")
        }
        Event::RelationChanged { relation, remote_unit } => {
            let Some(known) = record.relations.get(&relation.relation) else { return Vec::new() };
            match remote_unit {
                Some(unit) => {
                    let now = subject.bag_version(relation.relation, BagOwner::Unit(unit.clone()));
                    merged(known.members.get(unit).copied().unwrap_or(now), now, &settings_of(unit))
                }
                None => {
                    let application = &relation.remote_application;
                    let owner = BagOwner::Application(application.clone());
                    let now = subject.bag_version(relation.relation, owner);
                    let seen = known.applications.get(application).copied().unwrap_or(0);
                    merged(seen, now, &settings_of(application))
                }
            }
        }
        Event::RelationDeparted { relation, remote_unit, .. } => {
            let known = record.relations.get(&relation.relation);
            let seen = known.and_then(|known| known.members.get(remote_unit)).copied();
            let now = subject.bag_version(relation.relation, BagOwner::Unit(remote_unit.clone()));
            match now.saturating_sub(seen.unwrap_or(now)) {
                0 => None,
                1 => Some(format!("1 change of {} that it left behind", settings_of(remote_unit))),
                count => Some(format!("{count} changes of {} that it left behind", settings_of(remote_unit))),
            }
        }
        _ => None,
    };
    text.into_iter().collect()
}

fn merged(seen: u64, now: u64, what: &str) -> Option<String> {
    let count = now.saturating_sub(seen);
    (count > 1).then(|| format!("{count} changes of {what}"))
}

fn settings_of(owner: &impl Display) -> String {
    format!("{owner}'s settings")
}
