//! Events that a charm asks to be told later (decision 0017): part of a hook's commit, kept in the model until they are
//! told, once, or cancelled.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{EventId, RelationId, Timestamp, UnitName, event, hash, relation::BagOwner};

/// The most events that one unit waits for: each is looked at whenever the unit's view changes.
pub const MAX_PENDING: usize = 64;

/// The most bytes of the data of one event, as JSON text. It travels with the event, into the unit's record if its hook
/// fails, and into the journal; what is larger belongs into the unit's state.
pub const MAX_DATA_BYTES: usize = 16 << 10;

/// The most bytes that all pending events of a unit take as JSON: they are one entity, written as one.
pub const MAX_PENDING_BYTES: usize = 256 << 10;

/// The most conditions of one event.
pub const MAX_CONDITIONS: usize = 8;

/// The longest name of an event, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// The shortest time that an event may be put off, in milliseconds: a charm that asks again in each of its events wakes its
/// unit no more often than that.
pub const MIN_AFTER_MS: u64 = 1_000;

/// The longest, in milliseconds: a leap year.
pub const MAX_AFTER_MS: u64 = 366 * 24 * 3_600 * 1_000;

/// How far the clocks of two hosts may differ, in milliseconds. An event that was asked for longer than that from now was
/// asked for before a clock was set back, and nobody knows how long ago that was.
const CLOCKS_DIFFER_MS: i64 = 5 * 60 * 1_000;

/// An event that a unit waits for. It is told when its time has come or when one of its conditions holds, whichever is
/// first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PendingEvent {
    /// The name that the charm is told.
    pub name: String,
    /// JSON text, as the charm gave it.
    pub data: String,
    /// When it was committed, by the clock that the unit's timers run by.
    pub asked_at: Timestamp,
    /// How long after that it is told, in milliseconds; none: no time alone makes it due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
    /// What else makes it due.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// What makes an event due: something is not as the hook saw it that asked. Of what was seen only a digest is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// An option has another value, its default included.
    Config {
        /// Which.
        option: String,
        /// Of the value.
        seen: String,
    },
    /// A key of a bag has another value, or came, or went; or the unit is in the relation no more.
    Relation {
        /// The relation.
        relation: RelationId,
        /// Whose bag.
        owner: BagOwner,
        /// The key.
        key: String,
        /// Of the value.
        seen: String,
    },
    /// Somebody else leads the application, or nobody.
    Leader {
        /// Who led; none: nobody.
        seen: Option<UnitName>,
    },
}

/// What a condition keeps of a value, or of there being none.
pub fn digest<T: Serialize>(value: Option<&T>) -> String {
    hash::of_value(&value)
}

impl PendingEvent {
    /// When its time comes; none if it has none.
    ///
    /// One that was asked for at a time that is yet to come was asked for before the clock was set back: its time is
    /// now.
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let after = i64::try_from(self.after_ms?).unwrap_or(i64::MAX);
        let (asked, now_ms) = (self.asked_at.as_millisecond(), now.as_millisecond());
        if asked.saturating_sub(now_ms) > CLOCKS_DIFFER_MS {
            return Some(now);
        }
        Some(Timestamp::from_millisecond(asked.saturating_add(after)).unwrap_or(Timestamp::MAX))
    }
}

/// What a hook asks for: new events by their numbers, and events that it does not want any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct EventChanges {
    /// New ones, numbered on from the unit's last.
    pub emit: BTreeMap<EventId, PendingEvent>,
    /// Those that are not to be told.
    pub cancel: Vec<EventId>,
}

impl EventChanges {
    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Says when the new ones were asked for.
    pub fn asked_at(&mut self, now: Timestamp) {
        for event in self.emit.values_mut() {
            event.asked_at = now;
        }
    }
}

/// Why a text is no name of an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventNameError {
    /// Empty, too long, or with other characters.
    #[error(
        "{0:?} is no name of an event: use lower-case letters, digits and dashes, a letter first, at most \
         {MAX_NAME_BYTES} of them"
    )]
    Malformed(String),
    /// Another hook is, or may be, called so.
    #[error("{0:?} is the name of a hook; give the event a name of the charm's own")]
    Reserved(String),
}

/// Checks the name that a charm gives to an event: one that no hook has.
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
