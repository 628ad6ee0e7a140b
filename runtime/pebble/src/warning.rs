//! Warnings: messages for an operator, who acknowledges them.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::limits::PodLimits;

/// A warning.
#[derive(Debug, Clone)]
struct Warning {
    message: String,
    first: Timestamp,
    last: Timestamp,
    shown: Option<Timestamp>,
}

/// All warnings that are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warnings {
    /// Adds a warning. The same message counts as the same warning, which the operator is shown again.
    pub(crate) fn add(&mut self, date: Timestamp, message: &str, limits: &PodLimits) {
        if let Some(known) = self.0.iter_mut().find(|it| it.message == message) {
            known.last = date;
            return;
        }
        if self.0.len() >= limits.warnings {
            self.0.remove(0);
        }
        self.0.push(Warning { message: message.to_owned(), first: date, last: date, shown: None });
    }

    /// Returns all warnings.
    pub(crate) fn all(&self) -> Value {
        self.0.iter().map(Warning::shown).collect()
    }

    /// Returns the warnings that were not acknowledged since they were last added.
    pub(crate) fn pending(&self) -> Value {
        self.0.iter().filter(|it| it.is_pending()).map(Warning::shown).collect()
    }

    /// Acknowledges the warnings that were added until a time. Returns their number.
    pub(crate) fn acknowledge(&mut self, until: Timestamp, date: Timestamp) -> usize {
        let pending = self.0.iter_mut().filter(|it| it.is_pending() && it.last <= until);
        pending.map(|it| it.shown = Some(date)).count()
    }
}

impl Warning {
    fn shown(&self) -> Value {
        json!({
            "message": self.message,
            "first-added": self.first.to_string(),
            "last-added": self.last.to_string(),
            "last-shown": self.shown.map(|shown| shown.to_string()),
            "expire-after": "672h0m0s",
            "repeat-after": "24h0m0s",
        })
    }

    fn is_pending(&self) -> bool {
        self.shown.is_none_or(|shown| shown < self.last)
    }
}
