//! The next hook of one relation (`docs/hook-model.md` 2.5).

use periapt_host_api::{UnitName, event::Event};

use super::{
    batch,
    input::{RelationInput, RemoteUnitRun},
};

/// Returns the next hook of a relation; none if the unit was told everything. Versions are compared for
/// difference. A member's first change always follows its joining.
pub(super) fn hook(relation: &RelationInput<'_>) -> Option<Event> {
    if !relation.told.created {
        return None;
    }
    if relation.batches() {
        return batch::hook(relation).or_else(|| broken(relation));
    }
    pending_change(relation)
        .or_else(|| departed(relation))
        .or_else(|| broken(relation))
        .or_else(|| application_changed(relation))
        .or_else(|| joined(relation))
        .or_else(|| unit_changed(relation))
}

fn pending_change(relation: &RelationInput<'_>) -> Option<Event> {
    relation.told.changed_pending.as_ref().map(|unit| changed(relation, Some(unit)))
}

fn departed(relation: &RelationInput<'_>) -> Option<Event> {
    let gone = first(relation, RemoteUnitRun::departed)?;
    Some(Event::RelationDeparted {
        relation: relation.context(),
        departing_unit: relation.departing(&gone),
        remote_unit: gone,
    })
}

fn broken(relation: &RelationInput<'_>) -> Option<Event> {
    (relation.ending() && !relation.is_peer()).then(|| Event::RelationBroken(relation.context()))
}

fn application_changed(relation: &RelationInput<'_>) -> Option<Event> {
    relation.application_differs().then(|| changed(relation, None))
}

fn joined(relation: &RelationInput<'_>) -> Option<Event> {
    let new = first(relation, RemoteUnitRun::joined)?;
    Some(Event::RelationJoined { relation: relation.context(), remote_unit: new })
}

fn unit_changed(relation: &RelationInput<'_>) -> Option<Event> {
    let unit = first(relation, RemoteUnitRun::changed)?;
    Some(changed(relation, Some(&unit)))
}

/// The first unit at the other end of which something holds.
fn first(relation: &RelationInput<'_>, holds: impl Fn(&RemoteUnitRun) -> bool) -> Option<UnitName> {
    let number = relation.others().find(holds)?.numbers().next()?;
    Some(relation.other(number))
}

fn changed(relation: &RelationInput<'_>, unit: Option<&UnitName>) -> Event {
    Event::RelationChanged { relation: relation.context(), remote_unit: unit.cloned() }
}
