//! Invariants of every run, for any commands, failures and deaths. They cover the order of hooks, and the
//! state of a model at rest.
//!
//! The invariants are written from outside, from what charms and operators see, without knowledge of the
//! uniter's decisions.

use std::fmt;

mod order;
mod rest;

pub use order::order_violations;
pub use rest::rest_violations;

/// One violation of one invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule of `docs/hook-model.md`, or of a page of `docs/design`.
    pub rule: &'static str,
    /// The unit or relation, and the observation.
    pub what: String,
}

impl Violation {
    fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}
