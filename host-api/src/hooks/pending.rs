//! Custom events that a charm schedules (decision 0017). A hook's commit adds them, and the model keeps them until
//! they are told, once, or cancelled.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EventId, RelationId, Timestamp, UnitName, event, hash, relation::BagOwner};

/// The most pending events of one unit. The uniter checks each of them whenever the unit's view changes.
pub const MAX_PENDING: usize = 64;

/// The most bytes of the data of one event, as JSON text. The data travels with the event, into the unit's record if
/// its hook fails, and into the journal. Larger data belongs into the unit's state.
pub const MAX_DATA_BYTES: usize = 16 << 10;

/// The most bytes of all pending events of a unit, as JSON: they are one entity, written as one.
pub const MAX_PENDING_BYTES: usize = 256 << 10;

/// The most conditions of one event.
pub const MAX_CONDITIONS: usize = 8;

/// The longest name of an event, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// The shortest delay of an event, in milliseconds. It bounds how often a charm that schedules a new event in each
/// event wakes its unit.
pub const MIN_AFTER_MS: u64 = 1_000;

/// The longest delay of an event, in milliseconds: a leap year.
pub const MAX_AFTER_MS: u64 = 366 * 24 * 3_600 * 1_000;

/// The most by which the clocks of two hosts may differ, in milliseconds. A scheduling time further in the future
/// than that means that a clock was set back, by an unknown amount.
const CLOCKS_DIFFER_MS: i64 = 5 * 60 * 1_000;

/// An event that a unit waits for. The event is due when its time has come or when one of its conditions holds,
/// whichever is first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PendingEvent {
    /// The name of the event.
    pub name: String,
    /// The event's data: JSON text, as the charm gave it.
    pub data: String,
    /// The time of the commit, by the clock that the unit's timers run by.
    pub asked_at: Timestamp,
    /// The delay after `asked_at`, in milliseconds. `None` means that only a condition makes the event due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// Conditions that make the event due.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// A condition that makes an event due: a value differs from the one that the scheduling hook saw. The condition
/// keeps only a digest of that value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// An option has another value, defaults included.
    Config {
        /// The name of the option.
        option: String,
        /// The digest of the value.
        seen: String,
    },
    /// A key of a bag has another value, was added or was deleted, or the unit has left the relation.
    Relation {
        /// The relation.
        relation: RelationId,
        /// The owner of the bag.
        owner: BagOwner,
        /// The key in the bag.
        key: String,
        /// The digest of the value.
        seen: String,
    },
    /// Another unit leads the application, or none does.
    Leader {
        /// The unit that led. `None` means no unit.
        seen: Option<UnitName>,
    },
}

/// Returns the digest that a condition keeps of a value, or of its absence.
pub fn digest<T: Serialize>(value: Option<&T>) -> String {
    hash::of_value(&value)
}

impl PendingEvent {
    /// Returns the time at which the event is due. Returns `None` if the event has no delay.
    ///
    /// If `asked_at` is in the future, the clock was set back, and the event is due now.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let after = i64::try_from(self.after_ms?).unwrap_or(i64::MAX);
        let (asked, now_ms) = (self.asked_at.as_millisecond(), now.as_millisecond());
        if asked.saturating_sub(now_ms) > CLOCKS_DIFFER_MS {
            return Some(now);
        }
        Some(Timestamp::from_millisecond(asked.saturating_add(after)).unwrap_or(Timestamp::MAX))
    }
}

/// Changes of a unit's pending events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct EventChanges {
    /// New events by number, counted on from the unit's last.
    pub emit: BTreeMap<EventId, PendingEvent>,
    /// Events to cancel.
    pub cancel: Vec<EventId>,
}

impl EventChanges {
    /// Returns true if there are no changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Sets the scheduling time of the new events.
    pub fn asked_at(&mut self, now: Timestamp) {
        for event in self.emit.values_mut() {
            event.asked_at = now;
        }
    }
}

/// The reason that a text cannot be a custom event's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventNameError {
    /// The name is empty, too long, or has other characters.
    #[error(
        "{0:?} is no name of an event: use lower-case letters, digits and dashes, a letter first, at most \
         {MAX_NAME_BYTES} of them"
    )]
    Malformed(String),
    /// A hook has this name, or may have it.
    #[error("{0:?} is the name of a hook; give the event a name of the charm's own")]
    Reserved(String),
}

/// Checks the name that a charm gives to a custom event. No hook may have the same name.
///
/// # Errors
/// [`EventNameError`]
pub fn check_name(name: &str) -> Result<(), EventNameError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let starts = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !starts || name.len() > MAX_NAME_BYTES || !name.bytes().all(fits) {
        return Err(EventNameError::Malformed(name.chars().take(MAX_NAME_BYTES).collect()));
    }
    match event::is_hook_name(name) {
        true => Err(EventNameError::Reserved(name.to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(asked_at: &str, after_ms: Option<u64>) -> PendingEvent {
        PendingEvent {
            name: "again".into(),
            data: "null".into(),
            asked_at: asked_at.parse().unwrap(),
            after_ms,
            conditions: Vec::new(),
        }
    }

    #[test]
    fn a_time_comes_after_what_was_said_and_a_clock_set_back_does_not_put_it_off() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let check = |asked_at: &str, due: &str| {
            let found = event(asked_at, Some(600_000)).due(now);
            assert_eq!(found, Some(due.parse().unwrap()), "{asked_at}");
        };
        check("2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z");
        check("2025-12-31T00:00:00Z", "2025-12-31T00:10:00Z");
        check("2026-01-01T00:04:59Z", "2026-01-01T00:14:59Z");
        check("2026-01-01T00:05:01Z", "2026-01-01T00:00:00Z");
        assert_eq!(event("2026-01-01T00:00:00Z", None).due(now), None);
        assert_eq!(event("9999-01-01T00:00:00Z", Some(u64::MAX)).due(Timestamp::MAX), Some(Timestamp::MAX));
    }

    #[test]
    fn a_name_is_the_charms_own() {
        for good in ["retry", "look-again", "a", "x2", "installed", "my-relation", &"a".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", "2x", "A", "a b", "a_b", "é", "a/b", &"a".repeat(65)] {
            assert!(matches!(check_name(bad), Err(EventNameError::Malformed(_))), "{bad}");
        }
        for reserved in
            ["install", "db-relation-changed", "data-storage-attached", "secret-rotate", "app-pebble-ready"]
        {
            assert_eq!(check_name(reserved), Err(EventNameError::Reserved(reserved.into())));
        }
    }
}
