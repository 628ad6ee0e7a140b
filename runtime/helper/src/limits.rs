//! Limits of a helper, and their encoding.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// The limits of one piece of work on untrusted bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Limits {
    /// Private memory, in bytes.
    pub memory: u64,
    /// Processor time over all threads, in seconds.
    pub cpu_seconds: u64,
    /// Time from start to end.
    pub deadline: Duration,
    /// The most bytes of input.
    pub input: u64,
    /// The most bytes of output, and of each file that it may write.
    pub output: u64,
}

/// A helper's last argument: its work, and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct HelperJob<W> {
    pub(crate) work: W,
    pub(crate) limits: Limits,
    /// The process id of the starter.
    pub(crate) starter: u32,
}

/// The bytes of a core dump that forbid it: fewer than its first page. At 0 the kernel would still hand a dump to a
/// program that `core_pattern` names; at 1 it does not.
const NO_CORE_DUMP: u64 = 1;

impl<W: Serialize> HelperJob<W> {
    /// Creates an order from this process.
    pub(crate) fn new(work: W, limits: Limits) -> Self {
        Self { work, limits, starter: std::process::id() }
    }

    /// Encodes the order as the argument.
    pub(crate) fn to_argument(&self) -> String {
        // Words and numbers always have a JSON form. Without JSON the helper reports a missing order.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Limits {
    /// Applies the limits to this process, with one of open descriptors.
    pub(crate) fn bind(&self, descriptors: u64) -> rustix::io::Result<()> {
        // `RLIMIT_DATA`, not address space: engines reserve far more addresses than they use.
        for (resource, limit) in [
            (Resource::Data, self.memory),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Fsize, self.output),
            (Resource::Nofile, descriptors),
        ] {
            setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
        }
        forbid_core_dumps()
    }
}

/// Forbids core dumps of this process, and of those that it starts. A dump would contain secrets.
///
/// # Errors
/// The system refuses the limit.
pub fn forbid_core_dumps() -> rustix::io::Result<()> {
    let most = getrlimit(Resource::Core).maximum.map_or(NO_CORE_DUMP, |most| most.min(NO_CORE_DUMP));
    setrlimit(Resource::Core, Rlimit { current: Some(most), maximum: Some(most) })
}
