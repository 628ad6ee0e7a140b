//! What a document says against a rule.

use std::fmt;

/// The rule that a document breaks, as its author reads it: in Juju's words where it has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BrokenRule(String);

impl BrokenRule {
    /// An error of ours, in its own words.
    pub(crate) fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }

    /// Says before it which part of the document is meant.
    #[must_use]
    pub(crate) fn at(self, part: impl fmt::Display) -> Self {
        Self(format!("{part}: {self}"))
    }
}

impl From<String> for BrokenRule {
    fn from(rule: String) -> Self {
        Self(rule)
    }
}

impl From<&str> for BrokenRule {
    fn from(rule: &str) -> Self {
        Self(rule.to_owned())
    }
}
