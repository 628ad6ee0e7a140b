//! Log lines of units, and queries for them.

mod query;

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

pub use query::LogQuery;

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogLevel {
    /// The finest detail.
    Trace,
    /// Detail for authors of charms, and a hook's stdout.
    Debug,
    /// Ordinary progress.
    Info,
    /// An anomaly, and a hook's stderr.
    Warning,
    /// A failure.
    Error,
}

impl LogLevel {
    /// Returns the name in upper case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warning => "WARNING",
            Self::Error => "ERROR",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = ();
    /// Parses a level in any letter case; `WARN` reads as `WARNING` and `CRITICAL` as `ERROR`.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_uppercase().as_str() {
            "TRACE" => Ok(Self::Trace),
            "DEBUG" => Ok(Self::Debug),
            "INFO" => Ok(Self::Info),
            "WARNING" | "WARN" => Ok(Self::Warning),
            "ERROR" | "CRITICAL" => Ok(Self::Error),
            _ => Err(()),
        }
    }
}

/// One line, as `debug-log` streams it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LogLine {
    /// The entity that wrote the line: `unit-mysql-0`, `machine-0`, `controller`.
    pub entity: String,
    /// The time of writing.
    pub at: Timestamp,
    /// The severity.
    pub level: LogLevel,
    /// The module: `unit.mysql/0.install`, `unit.mysql/0.juju-log`, ...
    pub module: String,
    /// The text, without a final line break.
    pub message: String,
}
