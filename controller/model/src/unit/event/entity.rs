//! The entity of pending events.

use std::collections::BTreeMap;

use periapt_host_api::{EventId, UnitName, pending::PendingEvent};
use serde::{Deserialize, Serialize};

/// The pending events of one unit, and the next number. It exists for every unit that has ever scheduled one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PendingEvents {
    /// The unit.
    pub unit: UnitName,
    /// The number of the next event.
    pub next: EventId,
    /// The events that are neither delivered nor cancelled.
    pub events: BTreeMap<EventId, PendingEvent>,
}
