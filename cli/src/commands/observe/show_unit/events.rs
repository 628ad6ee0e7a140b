//! Later events that a unit's charm requested.

use periapt_host_api::{
    EventId, Timestamp,
    pending::{Condition, PendingEvent},
    relation::BagOwner,
};
use serde::Serialize;

/// One event. `cancel-event` takes its number.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ShownEvent {
    id: u64,
    name: String,
    data: String,
    asked_at: Timestamp,
    /// The time by its agent's clock.
    #[serde(skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    when: Vec<String>,
}

impl From<(EventId, PendingEvent)> for ShownEvent {
    fn from((id, event): (EventId, PendingEvent)) -> Self {
        Self {
            id: id.0,
            due: event.due(event.asked_at),
            name: event.name,
            data: event.data,
            asked_at: event.asked_at,
            when: event.conditions.iter().map(condition).collect(),
        }
    }
}

/// Describes a condition in words.
fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Config { option, .. } => format!("option {option} changes"),
        Condition::Relation { relation, owner, key, .. } => {
            let owner = match owner {
                BagOwner::Unit(unit) => unit.to_string(),
                BagOwner::Application(application) => application.to_string(),
            };
            format!("{key} of {owner} in relation {relation} changes")
        }
        Condition::Leader { .. } => "the leader changes".to_owned(),
    }
}
