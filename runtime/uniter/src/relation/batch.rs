//! The batch hook: all changes of a relation's members in one hook, for charms that want it (decision 0016).

use periapt_host_api::{
    UnitName,
    event::{Event, MAX_BATCH_MEMBERS, RelationBatch},
};

use super::sight::{Others, Sight};

/// Returns the next batch; none if the unit was told everything. The rest goes into the next batch. Departed
/// members come first, because no hook may follow broken.
///
/// A member that joined before the charm wanted batches, and whose first change the unit was not told, counts as
/// changed.
pub(super) fn hook(sight: &Sight<'_>) -> Option<Event> {
    let mut room = MAX_BATCH_MEMBERS;
    let mut batch =
        RelationBatch { application_changed: sight.application_differs(), ..RelationBatch::default() };

    batch.departed = units(sight, Others::departed, room);
    room = room.saturating_sub(batch.departed.len());

    batch.joined = units(sight, Others::joined, room);
    room = room.saturating_sub(batch.joined.len());

    batch.changed = changed(sight, room);

    if sight.leaves() && !batch.departed.is_empty() {
        batch.departing_unit = Some(sight.unit().clone());
    }
    (!batch.is_empty()).then(|| Event::RelationBatch { relation: sight.context(), batch })
}

/// The first units at the other end of which something holds.
fn units<U: FromIterator<UnitName>>(sight: &Sight<'_>, holds: impl Fn(&Others) -> bool, most: usize) -> U {
    let numbers = sight.others().filter(holds).flat_map(Others::numbers);
    numbers.take(most).map(|number| sight.other(number)).collect()
}

/// The first units whose bags are not as the unit was told last, and one whose first change is still to be told.
fn changed<U: FromIterator<UnitName>>(sight: &Sight<'_>, most: usize) -> U {
    let pending = sight.told.changed_pending.as_ref().map(UnitName::number);
    let numbers = sight.others().filter(|others| others.told.is_some() && others.seen).flat_map(|others| {
        let alone = pending.filter(|number| others.has(*number) && !others.changed());
        let all = others.changed().then(|| others.numbers());
        all.into_iter().flatten().chain(alone)
    });
    numbers.take(most).map(|number| sight.other(number)).collect()
}
