//! The batch hook: all changes of a relation's members in one hook, for charms that want it (decision 0016).

use periapt_host_api::{
    UnitName,
    event::{Event, MAX_BATCH_MEMBERS, RelationBatch},
};

use super::input::{RelationInput, RemoteUnitRun};

/// Returns the next batch; none if the unit was told everything. The rest goes into the next batch. Departed
/// members come first, because no hook may follow broken.
///
/// A member that joined before the charm wanted batches, and whose first change the unit was not told, counts as
/// changed.
pub(super) fn hook(relation: &RelationInput<'_>) -> Option<Event> {
    let mut room = MAX_BATCH_MEMBERS;
    let mut batch =
        RelationBatch { application_changed: relation.application_differs(), ..RelationBatch::default() };

    batch.departed = units(relation, RemoteUnitRun::departed, room);
    room = room.saturating_sub(batch.departed.len());

    batch.joined = units(relation, RemoteUnitRun::joined, room);
    room = room.saturating_sub(batch.joined.len());

    batch.changed = changed(relation, room);

    if relation.leaves() && !batch.departed.is_empty() {
        batch.departing_unit = Some(relation.unit().clone());
    }
    (!batch.is_empty()).then(|| Event::RelationBatch { relation: relation.context(), batch })
}

/// The first units at the other end of which something holds.
fn units<U: FromIterator<UnitName>>(
    relation: &RelationInput<'_>,
    holds: impl Fn(&RemoteUnitRun) -> bool,
    most: usize,
) -> U {
    let numbers = relation.others().filter(holds).flat_map(RemoteUnitRun::numbers);
    numbers.take(most).map(|number| relation.other(number)).collect()
}

/// Returns the first units whose bags differ from the versions that the unit was told last, and the one whose first
/// changed hook has yet to run.
fn changed<U: FromIterator<UnitName>>(relation: &RelationInput<'_>, most: usize) -> U {
    let pending = relation.told.changed_pending.as_ref().map(UnitName::number);
    let numbers =
        relation.others().filter(|others| others.told.is_some() && others.seen).flat_map(|others| {
            let alone = pending.filter(|number| others.has(*number) && !others.changed());
            let all = others.changed().then(|| others.numbers());
            all.into_iter().flatten().chain(alone)
        });
    numbers.take(most).map(|number| relation.other(number)).collect()
}
