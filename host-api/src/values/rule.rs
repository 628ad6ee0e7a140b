//! Errors about a document that breaks a rule.

use std::fmt;

/// A rule that a document breaks, in Juju's words where Juju has some.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BrokenRule(String);

impl BrokenRule {
    /// Wraps another error.
    pub(crate) fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }

    /// Puts the name of the document's part before the message.
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
