//! Later events (decision 0017): events that a charm schedules for itself. The call numbers them; the hook's
//! commit keeps them.

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, EventId, RelationId, Timestamp, UnitName,
    pending::{
        self, Condition, MAX_AFTER_MS, MAX_CONDITIONS, MAX_DATA_BYTES, MAX_PENDING, MIN_AFTER_MS,
        PendingEvent,
    },
    relation::BagOwner,
};
use serde::Serialize;

use crate::{
    BagSelector, CallAnswer, CallError, CallTime,
    context::{HookContext, HookRun},
    lease::Interruption,
};

/// A condition that makes an event due: its subject changes from the state that this hook sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DueCondition {
    /// An option's value.
    Config(String),
    /// One value of a bag that the unit does not write.
    Relation {
        /// The relation.
        relation: RelationId,
        /// The bag's owner.
        bag: BagSelector,
        /// The key.
        key: String,
    },
    /// The application's leader.
    Leader,
}

/// A request for a later event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LaterEvent {
    /// The charm's name for it.
    pub name: String,
    /// JSON text; none means `null`.
    pub data: Option<String>,
    /// The delay from the hook's commit, in milliseconds.
    pub after_ms: Option<u64>,
    /// The conditions that make the event due earlier.
    pub when: Vec<DueCondition>,
}

/// The typed interface: `events`.
impl HookContext {
    /// Requests a later event, and returns its number.
    pub fn emit_later(
        &mut self,
        now: CallTime,
        later: &LaterEvent,
    ) -> CallAnswer<Result<EventId, CallError>> {
        self.leader_call("events.emit-later", (later,), |run| {
            run.check_call(later.name.len() + later.data.as_ref().map_or(0, String::len))?;
            run.emit_later(now, later)
        })
    }

    /// Cancels a later event.
    pub fn cancel_event(&mut self, id: EventId) -> Result<(), CallError> {
        self.call("events.cancel", (id,), |run| run.cancel_event(id))
    }

    /// Returns the unit's pending events, by number.
    pub fn pending_events(&mut self) -> Vec<(EventId, PendingEvent)> {
        self.call("events.pending", (), |run| {
            run.pending_events().into_iter().map(|(id, event)| (id, event.clone())).collect()
        })
    }
}

impl HookRun {
    /// Requests an event, and returns its number.
    pub(crate) fn emit_later(&mut self, now: CallTime, later: &LaterEvent) -> Result<EventId, Interruption> {
        pending::check_name(&later.name).map_err(|error| CallError::invalid(error.to_string()))?;
        let data = later.data.as_deref().unwrap_or("null");
        check_data(data)?;
        check_times(later)?;
        let mut conditions = Vec::new();
        for when in &later.when {
            conditions.push(self.condition(now, when)?);
        }
        if self.pending_events().len() >= MAX_PENDING {
            return Err(CallError::LimitExceeded(format!(
                "the unit waits for {MAX_PENDING} events; no more are allowed"
            ))
            .into());
        }
        let event = PendingEvent {
            name: later.name.clone(),
            data: data.to_owned(),
            // The commit sets the time.
            asked_at: Timestamp::UNIX_EPOCH,
            after_ms: later.after_ms,
            conditions,
        };
        let first = self.snapshot.view.events.get(&self.snapshot.unit).map_or(0, |events| events.next.0);
        Ok(self.effects.emit(first, event, &self.limits)?)
    }

    /// Cancels an event.
    pub(crate) fn cancel_event(&mut self, id: EventId) -> Result<(), CallError> {
        if !self.pending_events().contains_key(&id) {
            return Err(CallError::NotFound(format!("the unit waits for no event {id}")));
        }
        self.effects.cancel_event(id, &self.limits)
    }

    /// Returns the unit's pending events, with this hook's requests, without its cancellations and the event that
    /// it handles.
    pub(crate) fn pending_events(&self) -> BTreeMap<EventId, &PendingEvent> {
        let stored = self.snapshot.view.events.get(&self.snapshot.unit);
        let changes = self.effects.events();
        let told = self.event.custom();
        let stored = stored.into_iter().flat_map(|stored| &stored.events);
        stored
            .filter(|(id, _)| !changes.cancel.contains(id) && told != Some(**id))
            .chain(&changes.emit)
            .map(|(id, event)| (*id, event))
            .collect()
    }

    /// Builds a condition from the state of its subject in this hook.
    fn condition(&mut self, now: CallTime, when: &DueCondition) -> Result<Condition, Interruption> {
        match when {
            DueCondition::Config(option) => {
                if !self.snapshot.meta().options.contains_key(option) {
                    return Err(CallError::NotFound(format!("unknown option {option:?}")).into());
                }
                let seen = pending::digest(self.config_value(option));
                Ok(Condition::Config { option: option.clone(), seen })
            }
            DueCondition::Relation { relation, bag, key } => {
                if key.is_empty() || key.len() > self.limits.key_bytes {
                    let most = self.limits.key_bytes;
                    return Err(CallError::invalid(format!("a key must take 1 to {most} bytes")).into());
                }
                // A refused read refuses the wait, too.
                let value = self.bag_value(now, *relation, bag, key)?;
                let owner = self.waited_for(*relation, bag)?;
                let seen = pending::digest(value.as_ref());
                Ok(Condition::Relation { relation: *relation, owner, key: key.clone(), seen })
            }
            DueCondition::Leader => {
                let leader = self.snapshot.application().leader.as_ref();
                Ok(Condition::Leader { seen: leader.map(|leader| leader.unit.clone()) })
            }
        }
    }

    /// Returns the owner of the bag that the event waits for. Refuses the unit's own bags.
    fn waited_for(&self, relation: RelationId, bag: &BagSelector) -> Result<BagOwner, CallError> {
        let own =
            || CallError::invalid("a unit knows what it writes itself: wait for a bag that others write");
        match bag {
            BagSelector::Unit(name) => {
                let unit: UnitName =
                    name.parse().map_err(|_| CallError::invalid(format!("invalid unit name {name:?}")))?;
                if unit == self.snapshot.unit { Err(own()) } else { Ok(BagOwner::Unit(unit)) }
            }
            BagSelector::Application(name) => {
                let application = ApplicationName::new(name)
                    .map_err(|_| CallError::invalid(format!("invalid application name {name:?}")))?;
                let peer = self.relation(relation)?.peer;
                let mine = application == *self.snapshot.unit.application() && !peer;
                if mine { Err(own()) } else { Ok(BagOwner::Application(application)) }
            }
        }
    }
}

fn check_data(data: &str) -> Result<(), CallError> {
    if data.len() > MAX_DATA_BYTES {
        return Err(CallError::LimitExceeded(format!(
            "the event's data takes {} bytes; at most {MAX_DATA_BYTES} are allowed",
            data.len()
        )));
    }
    let valid = serde_json::from_str::<serde::de::IgnoredAny>(data);
    valid.map(|_| ()).map_err(|error| CallError::invalid(format!("the event's data is not JSON: {error}")))
}

fn check_times(later: &LaterEvent) -> Result<(), CallError> {
    if later.after_ms.is_none() && later.when.is_empty() {
        return Err(CallError::invalid("say when: after a time, or when something changes"));
    }
    if later.when.len() > MAX_CONDITIONS {
        return Err(CallError::LimitExceeded(format!(
            "the event has {} conditions; at most {MAX_CONDITIONS} are allowed",
            later.when.len()
        )));
    }
    match later.after_ms {
        Some(after) if after < MIN_AFTER_MS => {
            Err(CallError::invalid("an event can be put off by one second or more"))
        }
        Some(after) if after > MAX_AFTER_MS => {
            Err(CallError::invalid("an event can be put off by 8784 hours, a year, or less"))
        }
        _ => Ok(()),
    }
}
