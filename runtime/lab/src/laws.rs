//! What is true of every run, whatever is asked, fails and dies: laws over the order of hooks, and over what a model
//! at rest must look like.
//!
//! The laws are written from the outside, from what charms and operators see, and know nothing of how the uniter
//! comes to its decisions.

use std::fmt;

mod order;
mod rest;

pub use order::order_broken;
pub use rest::unrest;

/// One breach of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The rule of `hook-model.md`, or of `design.md`.
    pub rule: &'static str,
    /// Whose, and what was seen.
    pub what: String,
}

impl Breach {
    fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}
