//! What was found in a charm's sources before anything was built.

use std::fmt;

use serde::Deserialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The charm cannot be imported.
    Error,
    /// It fails where the code comes to it, if it does.
    Warning,
}

/// Something that cannot work in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// Below the charm's directory.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// How bad it is.
    pub severity: Severity,
    /// What cannot work, and why.
    pub message: String,
}

/// `src/charm.py:7: threading.Thread: there are no threads`
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}
