//! The things that a Pebble tells of: services, checks, notices.

use std::collections::BTreeMap;

use serde_json::Value;

/// A service of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PebbleService {
    /// The name.
    pub name: String,
    /// `enabled` or `disabled`: whether `replan` starts it.
    pub startup: String,
    /// `active`, `inactive`, `backoff` (it ended, and is about to be started again) or `error`.
    pub current: String,
}

impl PebbleService {
    pub(super) fn of(shown: &Value) -> Self {
        Self { name: text(shown, "name"), startup: text(shown, "startup"), current: text(shown, "current") }
    }

    /// Returns true if the service runs.
    pub fn is_running(&self) -> bool {
        self.current == "active"
    }
}

/// A check of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PebbleCheck {
    /// The name.
    pub name: String,
    /// `alive`, `ready` or nothing.
    pub level: String,
    /// `up`, `down` or `inactive`.
    pub status: String,
    /// The failures in a row.
    pub failures: u64,
    /// The failures at which the check is down.
    pub threshold: u64,
}

impl PebbleCheck {
    pub(super) fn of(shown: &Value) -> Self {
        Self {
            name: text(shown, "name"),
            level: text(shown, "level"),
            status: text(shown, "status"),
            failures: number(shown, "failures"),
            threshold: number(shown, "threshold"),
        }
    }

    /// Returns true if the check succeeds, or has not failed often enough.
    pub fn is_up(&self) -> bool {
        self.status == "up"
    }
}

/// A notice of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PebbleNotice {
    /// The id.
    pub id: String,
    /// The type, such as `custom`.
    pub kind: String,
    /// The key.
    pub key: String,
    /// The number of occurrences.
    pub occurrences: u64,
    /// The data of the last occurrence.
    pub data: BTreeMap<String, String>,
}

impl PebbleNotice {
    pub(super) fn of(shown: &Value) -> Self {
        let data = shown.get("last-data").and_then(Value::as_object).into_iter().flatten();
        let data = data.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Self {
            id: text(shown, "id"),
            kind: text(shown, "type"),
            key: text(shown, "key"),
            occurrences: number(shown, "occurrences"),
            data: data.collect(),
        }
    }
}

pub(super) fn text(shown: &Value, key: &str) -> String {
    shown.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub(super) fn number(shown: &Value, key: &str) -> u64 {
    shown.get(key).and_then(Value::as_u64).unwrap_or_default()
}
