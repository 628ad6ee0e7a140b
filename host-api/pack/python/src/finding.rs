//! Findings about a charm's sources, made before anything is built.

use std::fmt;

use serde::Deserialize;

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The charm cannot be imported.
    Error,
    /// The code fails when it runs.
    Warning,
}

/// Code or configuration that cannot work in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct CheckFinding {
    /// The path below the charm's directory.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The severity.
    pub severity: Severity,
    /// The cause, for people.
    pub message: String,
}

/// `src/charm.py:7: os.fork: there are no processes`
impl fmt::Display for CheckFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}
