//! The batch hook: all changes of a relation's members in one hook, for charms that want it (decision 0016).

use periapt_host_api::event::{Event, MAX_BATCH_MEMBERS, RelationBatch};

use super::sight::Sight;

/// Returns the next batch; none if the unit was told everything. The rest goes into the next batch. Departed
/// members come first, because no hook may follow broken.
///
/// A member that joined before the charm wanted batches, and whose first change the unit was not told, counts as
/// changed.
pub(super) fn hook(sight: &Sight<'_>) -> Option<Event> {
    let mut room = MAX_BATCH_MEMBERS;
    let told = &sight.told.members;
    let mut batch =
        RelationBatch { application_changed: sight.application_differs(), ..RelationBatch::default() };

    batch.departed = told.keys().filter(|unit| !sight.sees(unit)).take(room).cloned().collect();
    room = room.saturating_sub(batch.departed.len());

    batch.joined = sight.members().filter(|unit| !told.contains_key(*unit)).take(room).cloned().collect();
    room = room.saturating_sub(batch.joined.len());

    let pending = sight.told.changed_pending.as_ref();
    let changed = told.iter().filter(|(unit, version)| {
        sight.sees(unit) && (sight.unit_version(unit) != **version || pending == Some(*unit))
    });
    batch.changed = changed.map(|(unit, _)| unit).take(room).cloned().collect();

    if sight.leaves() && !batch.departed.is_empty() {
        batch.departing_unit = Some(sight.unit().clone());
    }
    (!batch.is_empty()).then(|| Event::RelationBatch { relation: sight.context(), batch })
}
