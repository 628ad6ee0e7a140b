//! Where a laboratory stands: what decides what can happen from here on, and nothing else, so that two ways to the
//! same place are seen to meet.

use periapt_host_api::Timestamp;
use periapt_model::Entity;
use serde_json::{Map, Value, json};

use super::Lab;
use crate::LabError;

/// Fields for people, and those that tell how often or when something happened: nothing goes by them.
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

/// Fields with a time that is waited for: it has come, or it has not.
const AWAITED: &[&str] = &["due", "update-status-due"];

impl Lab {
    /// Where everything stands. Equal for two laboratories of the same charms in which the same can happen from here
    /// on: hooks, lives, members, bags and leaders, if time passes for longer than anything waits, or not at all. Of
    /// times it holds whether they have come, of counters and statuses nothing; who is connected is left out, as new
    /// units alone go by it. It comes in parts, whose order says nothing.
    ///
    /// # Errors
    /// A defect: something is not what JSON can hold.
    pub fn standing(&self) -> Result<Vec<Value>, LabError> {
        let mut parts = Vec::new();
        for entity in self.controller.stored() {
            match entity {
                // Numbers that are handed out next, and work items' own, are told apart by nobody.
                Entity::Sequence(_) => {}
                Entity::WorkItem(item) => parts.push(json!({
                    "work": self.blurred(&item.work)?,
                    "due": item.due.map(|due| self.has_come(due)),
                })),
                // What was uploaded, and who runs it, stays as it is.
                Entity::Charm(charm) => parts.push(json!(charm.digest.to_string())),
                Entity::ModelCharm(charm) => parts.push(json!(charm.digest.to_string())),
                Entity::Controller(_) | Entity::Runner(_) => {}
                Entity::Agent(agent) => parts.push(json!(agent.host.boot_id)),
                other => parts.push(self.blurred(other)?),
            }
        }
        let leaderless = self.state()?.applications().any(|application| application.leader.is_none());
        for agent in self.agents.values() {
            let claims = leaderless && !agent.has_claimed();
            parts.push(json!(format!(
                "{:?} {:?} {:?} {:?} {claims}",
                agent.process, agent.line, agent.stream, agent.disk
            )));
            for executor in agent.executors.values() {
                let seq = self.state()?.unit(executor.name()).map(|unit| unit.record.seq);
                let timer_now = agent.timeline.at(self.clock.boot_ms());
                parts.push(json!([
                    executor.name().to_string(),
                    executor.standing(seq, timer_now, &agent.view())
                ]));
            }
        }
        Ok(parts)
    }

    fn has_come(&self, time: Timestamp) -> bool {
        time <= self.now()
    }

    fn blurred(&self, value: &impl serde::Serialize) -> Result<Value, LabError> {
        let lost = |error: serde_json::Error| LabError::DoesNotTravel {
            what: "where a model stands",
            reason: error.to_string(),
        };
        let mut value = serde_json::to_value(value).map_err(lost)?;
        self.blur(&mut value);
        Ok(value)
    }

    fn blur(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                self.blur_failure(fields);
                blur_agent_status(fields);
                fields.retain(|name, _| !TOLD_ONLY.contains(&name.as_str()));
                for (name, field) in fields.iter_mut() {
                    let awaited = AWAITED.contains(&name.as_str()).then(|| field.as_str()?.parse().ok());
                    match awaited.flatten() {
                        Some(time) => *field = Value::Bool(self.has_come(time)),
                        None => self.blur(field),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.blur(item)),
            _ => {}
        }
    }

    /// Of a failed hook counts whether it is time to try again.
    fn blur_failure(&self, fields: &mut Map<String, Value>) {
        let failed_at = fields.remove("failed-at").and_then(|at| at.as_str()?.parse::<Timestamp>().ok());
        let wait = fields.remove("retry-after-ms").and_then(|wait| wait.as_u64());
        if let (Some(at), Some(wait)) = (failed_at, wait) {
            fields.insert("retry".to_owned(), Value::Bool(self.has_come(crate::clock::later(at, wait))));
        }
    }
}

/// Of what an agent does counts whether it ever said anything (L-1).
fn blur_agent_status(fields: &mut Map<String, Value>) {
    if let Some(status) = fields.get_mut("agent-status") {
        *status = Value::Bool(status.get("status").and_then(Value::as_str) == Some("allocating"));
    }
}
