//! The changes that a hook absorbs, as texts for people (`docs/hook-model.md` section 0, "what was merged or
//! skipped").

use std::fmt::Display;

use periapt_host_api::{
    Timestamp, UnitName,
    event::{Event, RelationBatch, RelationContext},
    relation::BagOwner,
};

use crate::{relation, resolve_input::ResolveInput, update_status};

/// The most units that a line names. It counts the others.
const MAX_NAMED: usize = 10;

/// Returns the changes that a run of this event merges into one hook, or makes moot. Each committed change of a bag,
/// of the settings or of the leader settings raises its version by one, so the difference of versions is the number of
/// changes.
pub(crate) fn by(input: &ResolveInput<'_>, event: &Event, now: Timestamp) -> Vec<String> {
    if event.task().is_some() {
        return Vec::new();
    }
    let mut absorbed = match event {
        Event::RelationBatch { relation, batch } => members(input, relation, batch),
        _ => changes(input, event).into_iter().collect(),
    };
    absorbed.extend(event.relation().and_then(|context| came_and_went(input, context)));
    absorbed.extend(update_status::absorbed(input, event, now));
    absorbed
}

/// Returns the changes that a hook about one subject merges.
fn changes(input: &ResolveInput<'_>, event: &Event) -> Option<String> {
    let record = input.record();
    match event {
        Event::ConfigChanged => {
            let seen = record.settings_version.unwrap_or(input.application.settings_version);
            merged(seen, input.application.settings_version, "the settings")
        }
        Event::LeaderSettingsChanged => {
            let now = input.application.leader_settings_version;
            let seen = record.leader_settings_version.unwrap_or(now);
            merged(seen, now, "the leader settings")
        }
        Event::RelationChanged { relation, remote_unit } => match remote_unit {
            Some(unit) => {
                let (seen, now) = versions(input, relation, unit);
                merged(seen.unwrap_or(now), now, &settings_of(unit))
            }
            None => application_changes(input, relation),
        },
        Event::RelationDeparted { relation, remote_unit, .. } => {
            let (seen, now) = versions(input, relation, remote_unit);
            match now.saturating_sub(seen.unwrap_or(now)) {
                0 => None,
                1 => Some(format!("1 change of {} that it left behind", settings_of(remote_unit))),
                count => Some(format!("{count} changes of {} that it left behind", settings_of(remote_unit))),
            }
        }
        _ => None,
    }
}

/// Returns the members of a batch, and the number of changes of their settings.
fn members(input: &ResolveInput<'_>, relation: &RelationContext, batch: &RelationBatch) -> Vec<String> {
    let told = [(&batch.joined, "joined"), (&batch.changed, "changed"), (&batch.departed, "departed")];
    let lines = told.into_iter().filter_map(|(units, what)| {
        let count = u64::try_from(units.len()).unwrap_or(u64::MAX);
        listed(units.iter(), count, what)
    });
    let merged: u64 = batch
        .changed
        .iter()
        .map(|unit| versions(input, relation, unit))
        .map(|(seen, now)| now.saturating_sub(seen.unwrap_or(now)))
        .filter(|count| *count > 1)
        .sum();
    let merged = (merged > 0).then(|| format!("{merged} changes of members' settings"));
    let application = batch.application_changed.then(|| application_changes(input, relation)).flatten();
    lines.chain(merged).chain(application).collect()
}

fn came_and_went(input: &ResolveInput<'_>, relation: &RelationContext) -> Option<String> {
    let (names, count) = relation::came_and_went(input, relation.relation, MAX_NAMED);
    match (count, names.is_empty()) {
        (0, _) => None,
        (1, true) => Some("1 unit came and went".to_owned()),
        (count, true) => Some(format!("{count} units came and went")),
        (count, false) => listed(names.iter(), count, "came and went"),
    }
}

fn application_changes(input: &ResolveInput<'_>, relation: &RelationContext) -> Option<String> {
    let application = &relation.remote_application;
    let known = input.record().relations.get(&relation.relation)?;
    let now = input.bag_version(relation.relation, BagOwner::Application(application.clone()));
    merged(known.applications.get(application).copied().unwrap_or(0), now, &settings_of(application))
}

/// Returns the version of a member's settings that the unit saw last, and the current version.
fn versions(input: &ResolveInput<'_>, relation: &RelationContext, unit: &UnitName) -> (Option<u64>, u64) {
    let known = input.record().relations.get(&relation.relation);
    let now = input.bag_version(relation.relation, BagOwner::Unit(unit.clone()));
    (known.and_then(|known| known.members.get(unit)).copied(), now)
}

/// Formats `2 units joined: b/0, b/1` from the count and the first names. Returns none for no units.
fn listed<'a>(units: impl Iterator<Item = &'a UnitName>, count: u64, what: &str) -> Option<String> {
    let names: Vec<String> = units.take(MAX_NAMED).map(ToString::to_string).collect();
    let rest = match count.saturating_sub(u64::try_from(names.len()).unwrap_or(u64::MAX)) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let noun = if count == 1 { "unit" } else { "units" };
    (count > 0).then(|| format!("{count} {noun} {what}: {}{rest}", names.join(", ")))
}

fn merged(seen: u64, now: u64, what: &str) -> Option<String> {
    let count = now.saturating_sub(seen);
    (count > 1).then(|| format!("{count} changes of {what}"))
}

fn settings_of(owner: &impl Display) -> String {
    format!("{owner}'s settings")
}
