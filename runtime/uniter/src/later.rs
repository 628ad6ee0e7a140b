//! Events that the charm asked to be told later: when one is due (decision 0017).

use periapt_host_api::{
    EventId, Timestamp,
    event::Event,
    pending::{Condition, PendingEvent, digest},
    relation::BagKey,
};

use crate::{Decision, subject::Subject};

/// After all ordinary hooks, before update-status: the first, in the order in which they were asked for, whose time has
/// come or one of whose conditions holds. Nothing is told to a unit that has not started or that goes.
pub(crate) fn next(subject: &Subject<'_>, now: Timestamp) -> Option<Decision> {
    if !subject.at_rest() || !subject.alive() || !subject.record().started {
        return None;
    }
    let (id, event) = pending(subject).find(|(_, event)| is_due(subject, event, now))?;
    let event = Event::Custom { id: *id, name: event.name.clone(), data: event.data.clone() };
    Some(subject.run(event, now))
}

/// When the clock alone makes the next one due.
pub(crate) fn wake_at(subject: &Subject<'_>, now: Timestamp) -> Option<Timestamp> {
    let waits = subject.alive() && subject.record().started;
    pending(subject).filter(|_| waits).filter_map(|(_, event)| event.due(now)).min()
}

/// Whether an event that was due or failed was cancelled since.
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

/// Whether something is not as it was seen. Compared for difference: what changed and changed back was never seen, as
/// with bags.
fn holds(subject: &Subject<'_>, condition: &Condition) -> bool {
    match condition {
        Condition::Config { option, seen } => {
            let charm = subject.record().charm.unwrap_or(subject.application.charm).digest;
            let meta = subject.view.charms.get(&charm).map(|charm| &charm.meta);
            digest(meta.and_then(|meta| meta.admitted(&subject.application.config, option))) != *seen
        }
        Condition::Relation { relation, owner, key, seen } => {
            // Nobody is left waiting for a relation that is over.
            !subject.record().relations.contains_key(relation)
                || digest(bag_value(subject, BagKey { relation: *relation, owner: owner.clone() }, key))
                    != *seen
        }
        // Where nobody leads, claims are not answered yet, and the one who led may lead again (decision 0034).
        Condition::Leader { seen } => {
            subject.application.leader.as_ref().is_some_and(|leader| Some(&leader.unit) != seen.as_ref())
        }
    }
}

fn bag_value<'a>(subject: &Subject<'a>, bag: BagKey, key: &str) -> Option<&'a String> {
    subject.view.bags.get(&bag).and_then(|bag| bag.settings.get(key))
}
