//! The delayed events of a charm (decision 0017).

use periapt_host_api::{
    EventId, Timestamp,
    event::Event,
    pending::{Condition, PendingEvent, digest},
    relation::BagKey,
};

use crate::{Decision, resolve_input::ResolveInput};

/// Returns the first delayed event, in the order of the requests, whose time has come or one of whose conditions holds.
/// It comes after all ordinary hooks, before update-status. A unit that has not started or is dying gets none.
pub(crate) fn next(input: &ResolveInput<'_>, now: Timestamp) -> Option<Decision> {
    if !input.at_rest() || !input.alive() || !input.record().started {
        return None;
    }
    let (id, event) = pending(input).find(|(_, event)| is_due(input, event, now))?;
    let event = Event::Custom { id: *id, name: event.name.clone(), data: event.data.clone() };
    Some(input.run(event, now))
}

/// Returns the time at which the next event is due even without a change.
pub(crate) fn wake_at(input: &ResolveInput<'_>, now: Timestamp) -> Option<Timestamp> {
    let waits = input.alive() && input.record().started;
    pending(input).filter(|_| waits).filter_map(|(_, event)| event.due(now)).min()
}

/// Returns true if an event that was due or failed has been cancelled.
pub(crate) fn is_moot(input: &ResolveInput<'_>, event: &Event) -> bool {
    event.custom().is_some_and(|id| pending(input).all(|(pending, _)| *pending != id))
}

fn pending<'a>(input: &ResolveInput<'a>) -> impl Iterator<Item = (&'a EventId, &'a PendingEvent)> {
    input.view.events.get(&input.unit.name).into_iter().flat_map(|found| &found.events)
}

fn is_due(input: &ResolveInput<'_>, event: &PendingEvent, now: Timestamp) -> bool {
    event.due(now).is_some_and(|due| due <= now)
        || event.conditions.iter().any(|condition| holds(input, condition))
}

/// Returns true if a value differs from the one that the charm saw. A value that changed and changed back counts as
/// unchanged, as with bags.
fn holds(input: &ResolveInput<'_>, condition: &Condition) -> bool {
    match condition {
        Condition::Config { option, seen } => {
            let charm = input.record().charm.unwrap_or(input.application.charm).digest;
            let meta = input.view.charms.get(&charm).map(|charm| &charm.meta);
            digest(meta.and_then(|meta| meta.admitted(&input.application.config, option))) != *seen
        }
        Condition::Relation { relation, owner, key, seen } => {
            // A relation that is over makes its events due.
            !input.record().relations.contains_key(relation)
                || digest(bag_value(input, BagKey { relation: *relation, owner: owner.clone() }, key))
                    != *seen
        }
        // Without a leader, claims are not answered yet, and the last leader may lead again (decision 0034).
        Condition::Leader { seen } => {
            input.application.leader.as_ref().is_some_and(|leader| Some(&leader.unit) != seen.as_ref())
        }
    }
}

fn bag_value<'a>(input: &ResolveInput<'a>, bag: BagKey, key: &str) -> Option<&'a String> {
    input.view.bags.get(&bag).and_then(|bag| bag.settings.get(key))
}
