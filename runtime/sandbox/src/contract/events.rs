//! The interface `events`.

use periapt_hook::DueCondition;
use periapt_host_api::{EventId, RelationId, pending, relation::BagOwner};
use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::{
        events::{Condition, Later, PendingEvent, RelationKey},
        relations::Bag,
    },
    host_call,
    types::Error,
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link_leader(interface, "emit-later", |context, now, (later,): &(Later,)| {
        let answer = context.emit_later(now, &later.clone().into());
        answer.map(|id| id.map(|id| id.0).map_err(Error::from))
    })?;
    host_call::link(interface, "cancel", |context, _, (id,): (u64,)| {
        context.cancel_event(EventId(id)).map_err(Error::from)
    })?;
    host_call::link(interface, "pending", |context, _, (): ()| {
        context.pending_events().into_iter().map(PendingEvent::from).collect::<Vec<_>>()
    })
}

impl From<Later> for periapt_hook::LaterEvent {
    fn from(later: Later) -> Self {
        let when = later.conditions.into_iter().map(DueCondition::from).collect();
        Self { name: later.name, data: later.json, after_ms: later.after, when }
    }
}

impl From<Condition> for DueCondition {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition::Config(option) => Self::Config(option),
            Condition::Relation(RelationKey { relation, bag, key }) => {
                Self::Relation { relation: RelationId(relation), bag: bag.into(), key }
            }
            Condition::Leader => Self::Leader,
        }
    }
}

impl From<pending::Condition> for Condition {
    fn from(condition: pending::Condition) -> Self {
        match condition {
            pending::Condition::Config { option, .. } => Self::Config(option),
            pending::Condition::Relation { relation, owner, key, .. } => {
                let bag = match owner {
                    BagOwner::Unit(unit) => Bag::Unit(unit.to_string()),
                    BagOwner::Application(application) => Bag::Application(application.to_string()),
                };
                Self::Relation(RelationKey { relation: relation.0, bag, key })
            }
            pending::Condition::Leader { .. } => Self::Leader,
        }
    }
}

impl From<(EventId, pending::PendingEvent)> for PendingEvent {
    fn from((id, event): (EventId, pending::PendingEvent)) -> Self {
        Self {
            id: id.0,
            name: event.name,
            json: event.data,
            after: event.after_ms,
            conditions: event.conditions.into_iter().map(Condition::from).collect(),
        }
    }
}
