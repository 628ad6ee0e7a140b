//! The state of a laboratory, reduced to the parts that decide what can happen next, so that two paths to the same
//! state are seen to meet.

use std::collections::HashMap;

use periapt_host_api::Timestamp;
use periapt_model::Entity;
use serde_json::{Map, Value, json};

use super::Lab;
use crate::LabError;

/// Fields that nothing depends on: texts, and those with the number or time of past events.
const TOLD_ONLY: &[&str] = &[
    "application-status",
    "attempts",
    "created-at",
    "early-number",
    "incarnation",
    "last-commit",
    "last-term",
    "message",
    "refreshed",
    "removed-usage",
    "seq",
    "since",
    "state-since",
    "status-refreshed",
    "term",
    "usage",
    "workload-status",
];

/// Fields with a time that is waited for: only whether it has come counts.
const AWAITED: &[&str] = &["due", "update-status-due"];

/// A cache of reduced entities. Cloned laboratories share most entities.
#[derive(Debug)]
pub struct ReductionCache<T>(HashMap<*const (), Known<T>>);

#[derive(Debug)]
struct Known<T> {
    /// The entity, held so that its address is not reused.
    _entity: Entity,
    /// The time of the reduction, if it depended on the time.
    at: Option<Timestamp>,
    part: Option<T>,
}

/// The most entities in the cache.
const MOST_KNOWN: usize = 200_000;

impl<T> Default for ReductionCache<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl Lab {
    /// Returns the reduced state, equal for two laboratories of the same charms in which the same can happen next:
    /// hooks, lives, members, bags and leaders, if time passes for longer than anything waits, or not at all. Of
    /// times it holds whether they have come, and it leaves out counters, statuses and connected agents, on which
    /// only new units depend. It consists of unordered parts, each made by `make`.
    ///
    /// # Errors
    /// A defect: a value has no JSON form.
    pub fn reduced_state<T: Copy>(
        &self,
        known: &mut ReductionCache<T>,
        make: impl Fn(&Value) -> T,
    ) -> Result<Vec<T>, LabError> {
        if known.0.len() > MOST_KNOWN {
            known.0.clear();
        }
        let mut parts = Vec::new();
        for entity in self.controller.stored() {
            let found = known.0.get(&entity.address());
            let found = found.filter(|known| known.at.is_none_or(|at| at == self.now()));
            let part = match found {
                Some(known) => known.part,
                None => {
                    let mut reducer = Reducer { now: self.now(), asked: false };
                    let part = reducer.entity(entity)?.map(|part| make(&part));
                    let at = reducer.asked.then(|| self.now());
                    known.0.insert(entity.address(), Known { _entity: entity.clone(), at, part });
                    part
                }
            };
            parts.extend(part);
        }
        let leaderless = self.state()?.applications().any(|application| application.leader.is_none());
        for agent in self.agents.values() {
            let claims = leaderless && !agent.has_claimed();
            parts.push(make(&json!(format!(
                "{:?} {:?} {:?} {:?} {:?} {claims}",
                agent.process, agent.line, agent.stream, agent.disk, agent.claims
            ))));
            let view = agent.view();
            let now = agent.time(self.clock);
            for driver in agent.drivers.values() {
                let seq = self.state()?.unit(driver.name()).map(|unit| unit.record.seq);
                let standing = driver.reduced_state(seq, now, &view);
                parts.push(make(&json!([driver.name().to_string(), standing])));
            }
        }
        Ok(parts)
    }
}

/// Reduces entities to the parts that decide what can happen next.
struct Reducer {
    now: Timestamp,
    /// True if the reduction depended on the time.
    asked: bool,
}

impl Reducer {
    /// Reduces an entity. None if nothing depends on it.
    fn entity(&mut self, entity: &Entity) -> Result<Option<Value>, LabError> {
        Ok(Some(match entity {
            // Counters of names and work items.
            Entity::Sequence(_) => return Ok(None),
            Entity::WorkItem(item) => json!({
                "work": self.value(&item.work)?,
                "due": item.due.map(|due| self.has_come(due)),
            }),
            // An uploaded charm, and its use by a model, stay the same.
            Entity::Charm(charm) => json!(charm.digest.to_string()),
            Entity::ModelCharm(charm) => json!(charm.digest.to_string()),
            Entity::Controller(_) | Entity::Runner(_) => return Ok(None),
            Entity::Agent(agent) => json!(agent.host.boot_id),
            other => self.value(other)?,
        }))
    }

    fn has_come(&mut self, time: Timestamp) -> bool {
        self.asked = true;
        time <= self.now
    }

    fn value(&mut self, value: &impl serde::Serialize) -> Result<Value, LabError> {
        let lost = |error: serde_json::Error| LabError::DoesNotTravel {
            what: "where a model stands",
            reason: error.to_string(),
        };
        let mut value = serde_json::to_value(value).map_err(lost)?;
        self.fields_of(&mut value);
        Ok(value)
    }

    fn fields_of(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                self.failure(fields);
                blur_agent_status(fields);
                fields.retain(|name, _| !TOLD_ONLY.contains(&name.as_str()));
                for (name, field) in fields.iter_mut() {
                    let awaited = AWAITED.contains(&name.as_str()).then(|| field.as_str()?.parse().ok());
                    match awaited.flatten() {
                        Some(time) => *field = Value::Bool(self.has_come(time)),
                        None => self.fields_of(field),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.fields_of(item)),
            _ => {}
        }
    }

    /// Reduces a failed hook to whether its retry is due.
    fn failure(&mut self, fields: &mut Map<String, Value>) {
        let failed_at = fields.remove("failed-at").and_then(|at| at.as_str()?.parse::<Timestamp>().ok());
        let wait = fields.remove("retry-after-ms").and_then(|wait| wait.as_u64());
        if let (Some(at), Some(wait)) = (failed_at, wait) {
            let come = self.has_come(crate::clock::later(at, wait));
            fields.insert("retry".to_owned(), Value::Bool(come));
        }
    }
}

/// Reduces an agent's status to whether it ever reported (L-1).
fn blur_agent_status(fields: &mut Map<String, Value>) {
    if let Some(status) = fields.get_mut("agent-status") {
        *status = Value::Bool(status.get("status").and_then(Value::as_str) == Some("allocating"));
    }
}
