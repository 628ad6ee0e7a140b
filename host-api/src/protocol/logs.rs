//! Log lines of units, and which of them are wanted.

mod query;

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

pub use query::LogQuery;

/// How important a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum LogLevel {
    /// Finest.
    Trace,
    /// For authors; also a hook's stdout.
    Debug,
    /// Ordinary.
    Info,
    /// Something is odd; also a hook's stderr.
    Warning,
    /// Something failed.
    Error,
}

impl LogLevel {
    /// The name in upper case.
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
    /// In any letter case; `CRITICAL` and `WARN` are taken for their neighbours.
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
    /// Who wrote it: `unit-mysql-0`, `machine-0`, `controller`.
    pub entity: String,
    /// When.
    pub at: Timestamp,
    /// How important.
    pub level: LogLevel,
    /// `unit.mysql/0.install`, `unit.mysql/0.juju-log`, ...
    pub module: String,
    /// The text; no line break at its end.
    pub message: String,
}
