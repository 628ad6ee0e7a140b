//! The delayed events of a charm (decision 0017).

use periapt_host_api::{
    EventId, Timestamp,
    event::Event,
    pending::{Condition, PendingEvent, digest},
    relation::BagKey,
};

use crate::{Decision, subject::Subject};

/// Returns the first delayed event, in the order of the requests, whose time has come or one of whose conditions holds.
/// It comes after all ordinary hooks, before update-status. A unit that has not started or is dying gets none.
pub(crate) fn next(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    if !subject.at_rest() || !subject.alive() || !subject.record().started {
        return None;
    }
    let (id, event) = pending(subject).find(|(_, event)| is_due(subject, event, now))?;
    let event = Event::Custom { id: *id, name: event.name.clone(), data: event.data.clone() };
    Some(subject.run(event, now))
}

/// Returns the time at which the next event is due even without a change.
pub(crate) fn wake_at(subject: &Subject<'_>, now: Timestamp) -> Option<Timestamp> {
    let waits = subject.alive() && subject.record().started;
    pending(subject).filter(|_| waits).filter_map(|(_, event)| event.due(now)).min()
}

/// Returns true if an event that was due or failed has been cancelled.
pub(crate) fn moot(subject: &Subject<'_>, event: &Event) -> bool {
    event.custom().is_some_and(|id| pending(subject).all(|(pending, _)| *pending != id))
}

fn pending<'a>(subject: &Subject<'a>) -> impl Iterator<Item = (&'a EventId, &'a PendingEvent)> {
    subject.view.events.get(&subject.unit.name).into_iter().flat_map(|found| &found.events)
}

fn is_due(subject: &Subject<'_>, event: &PendingEvent, now: Timestamp) -> bool {
    event.due(now).is_some_and(|due| due <= now)
        || event.conditions.iter().any(|condition| holds(subject, condition))
}

/// Returns true if a value differs from the one that the charm saw. A value that changed and changed back counts as
/// unchanged, as with bags.
fn holds(subject: &Subject<'_>, condition: &Condition) -> bool {
    match condition {
        Condition::Config { option, seen } => {
            let charm = subject.record().charm.unwrap_or(subject.application.charm).digest;
            let meta = subject.view.charms.get(&charm).map(|charm| &charm.meta);
            digest(meta.and_then(|meta| meta.admitted(&subject.application.config, option))) != *seen
        }
        Condition::Relation { relation, owner, key, seen } => {
            // A relation that is over makes its events due.
            !subject.record().relations.contains_key(relation)
                || digest(bag_value(subject, BagKey { relation: *relation, owner: owner.clone() }, key))
                    != *seen
        }
        // Without a leader, claims are not answered yet, and the last leader may lead again (decision 0034).
        Condition::Leader { seen } => {
            subject.application.leader.as_ref().is_some_and(|leader| Some(&leader.unit) != seen.as_ref())
        }
    }
}

fn bag_value<'a>(subject: &Subject<'a>, bag: BagKey, key: &str) -> Option<&'a String> {
    subject.view.bags.get(&bag).and_then(|bag| bag.settings.get(key))
}
