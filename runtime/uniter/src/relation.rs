//! The unit's relations: their visible state, their next hooks, and entering and leaving their scopes
//! (`docs/hook-model.md` section 2).

use periapt_host_api::{RelationId, Timestamp, UnitName, event::Event, status::Life, view::RelationView};

use crate::{Decision, resolve_input::ResolveInput};

mod batch;
mod input;
mod next;
mod scope;

use input::RelationInput;

pub use scope::MAX_SCOPES_PER_COMMIT;

/// Enters the due scopes, and then runs relation-created of each new relation (1.7 rule 7).
pub(crate) fn created(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    if !input.at_rest() || !input.record().installed || !input.alive() {
        return None;
    }
    scope::enter(input).or_else(|| {
        let relations = RelationInput::of_all(input);
        let new = relations.iter().find(|relation| !relation.told.created && !relation.ending())?;
        Some(input.run(Event::RelationCreated(new.context()), now))
    })
}

/// Leaves the scopes that no hook needs any more, and then runs the next hook of the first relation that has one (1.7
/// rules 17a and 17e).
pub(crate) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    let relations = RelationInput::of_all(input);
    scope::leave(input, &relations).or_else(|| {
        relations.iter().find_map(|relation| next::hook(relation)).map(|event| input.run(event, now))
    })
}

/// Returns true if a relation was removed. A relation that was removed by force stays in the view, dead, while the
/// record of a unit names it.
pub(crate) fn is_gone(view: Option<&RelationView>) -> bool {
    view.is_none_or(|view| view.life == Life::Dead)
}

/// Returns true if the event's relation is gone from the model, which makes it moot (U-16). Departed and broken are not
/// moot, because they undo what the charm was told (`docs/hook-model.md` section 0).
pub(crate) fn is_moot(input: &ResolveInput<'_>, event: &Event) -> bool {
    let brings_changes = match event {
        Event::RelationCreated(_) | Event::RelationJoined { .. } | Event::RelationChanged { .. } => true,
        Event::RelationBatch { batch, .. } => {
            !batch.joined.is_empty() || !batch.changed.is_empty() || batch.application_changed
        }
        _ => false,
    };
    brings_changes
        && event.relation().is_some_and(|context| is_gone(input.view.relations.get(&context.relation)))
}

/// Returns the present form of a hook that was recorded as due or failed. Returns none if the unit's new charm wants
/// members in another form, or if the batch is empty now.
pub(crate) fn present_form(input: &ResolveInput<'_>, event: &Event) -> Option<Event> {
    let is_batch = match event {
        Event::RelationBatch { .. } => true,
        Event::RelationJoined { .. } | Event::RelationChanged { .. } | Event::RelationDeparted { .. } => {
            false
        }
        _ => return Some(event.clone()),
    };
    let context = event.relation()?;
    let relations = RelationInput::of_all(input);
    let relation = relations.iter().find(|relation| relation.id == context.relation);
    match (is_batch, relation) {
        (true, Some(relation)) if relation.batches() => batch::hook(relation),
        (false, Some(relation)) if relation.batches() => None,
        (true, _) => None,
        (false, _) => Some(event.clone()),
    }
}

/// Returns the number of former members of a relation, without those whose departure the unit has yet to be told.
pub(crate) fn gone(input: &ResolveInput<'_>, relation: RelationId) -> u64 {
    let relations = RelationInput::of_all(input);
    let relation = relations.iter().find(|known| known.id == relation);
    relation.map_or(0, RelationInput::gone_members)
}

/// Returns the units that came and went since the relation's last hook; see [`RelationInput::came_and_went`].
pub(crate) fn came_and_went(
    input: &ResolveInput<'_>,
    relation: RelationId,
    most_named: usize,
) -> (Vec<UnitName>, u64) {
    let relations = RelationInput::of_all(input);
    let relation = relations.iter().find(|known| known.id == relation);
    relation.map_or_else(Default::default, |relation| relation.came_and_went(most_named))
}

/// Returns true if this unit or its whole application is being removed, so that this unit is the departing one.
fn leaving(input: &ResolveInput<'_>) -> bool {
    !input.alive() || input.application.life != Life::Alive
}
