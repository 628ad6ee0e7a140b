//! What bounds a helper, and how it is told.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The fences around one piece of work on a stranger's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// Private memory, in bytes.
    pub memory: u64,
    /// Processor time over all threads, in seconds.
    pub cpu_seconds: u64,
    /// From start to end.
    pub deadline: Duration,
    /// The most bytes that are read.
    pub input: u64,
    /// The most bytes that are written.
    pub output: u64,
}

/// A helper's last argument.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Order<W> {
    pub(crate) work: W,
    pub(crate) limits: Limits,
    /// The process that starts it.
    pub(crate) starter: u32,
}

impl<W: Serialize> Order<W> {
    /// An order of this process.
    pub(crate) fn new(work: W, limits: Limits) -> Self {
        Self { work, limits, starter: std::process::id() }
    }

    /// As the argument.
    pub(crate) fn to_argument(&self) -> String {
        // Words and numbers always have a JSON form; without one the helper says that it got no order.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Limits {
    /// Binds this process.
    pub(crate) fn bind(&self) -> rustix::io::Result<()> {
        // Private memory, not address space: engines reserve far more addresses than they ever use.
        for (resource, limit) in [
            (Resource::Data, self.memory),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Fsize, self.output),
            (Resource::Nofile, 16),
            (Resource::Core, 0),
        ] {
            setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
        }
        Ok(())
    }
}
