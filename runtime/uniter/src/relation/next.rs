//! The next hook of one relation (`docs/hook-model.md` 2.5).

use periapt_host_api::{UnitName, event::Event};

use super::{
    batch,
    sight::{Others, Sight},
};

/// Returns the next hook of a relation; none if the unit was told everything. Versions are compared for
/// difference. A member's first change always follows its joining.
pub(super) fn hook(sight: &Sight<'_>) -> Option<Event> {
    if !sight.told.created {
        return None;
    }
    if sight.batches() {
        return batch::hook(sight).or_else(|| broken(sight));
    }
    pending_change(sight)
        .or_else(|| departed(sight))
        .or_else(|| broken(sight))
        .or_else(|| application_changed(sight))
        .or_else(|| joined(sight))
        .or_else(|| unit_changed(sight))
}

fn pending_change(sight: &Sight<'_>) -> Option<Event> {
    sight.told.changed_pending.as_ref().map(|unit| changed(sight, Some(unit)))
}

fn departed(sight: &Sight<'_>) -> Option<Event> {
    let gone = first(sight, Others::departed)?;
    Some(Event::RelationDeparted {
        relation: sight.context(),
        departing_unit: sight.departing(&gone),
        remote_unit: gone,
    })
}

fn broken(sight: &Sight<'_>) -> Option<Event> {
    (sight.ending() && !sight.is_peer()).then(|| Event::RelationBroken(sight.context()))
}

fn application_changed(sight: &Sight<'_>) -> Option<Event> {
    sight.application_differs().then(|| changed(sight, None))
}

fn joined(sight: &Sight<'_>) -> Option<Event> {
    let new = first(sight, Others::joined)?;
    Some(Event::RelationJoined { relation: sight.context(), remote_unit: new })
}

fn unit_changed(sight: &Sight<'_>) -> Option<Event> {
    let unit = first(sight, Others::changed)?;
    Some(changed(sight, Some(&unit)))
}

/// The first unit at the other end of which something holds.
fn first(sight: &Sight<'_>, holds: impl Fn(&Others) -> bool) -> Option<UnitName> {
    let number = sight.others().find(holds)?.numbers().next()?;
    Some(sight.other(number))
}

fn changed(sight: &Sight<'_>, unit: Option<&UnitName>) -> Event {
    Event::RelationChanged { relation: sight.context(), remote_unit: unit.cloned() }
}
