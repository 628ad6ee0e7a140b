//! Events that charms asked to be told later.

use std::collections::BTreeMap;

use periapt_host_api::{EventId, UnitName, pending::PendingEvent};
use serde::{Deserialize, Serialize};

/// The events that one unit waits for, and how many it ever asked for. There for units that ever asked for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PendingEvents {
    /// The unit.
    pub unit: UnitName,
    /// The number that the next one gets.
    pub next: EventId,
    /// Those that were neither told nor cancelled.
    pub events: BTreeMap<EventId, PendingEvent>,
}
