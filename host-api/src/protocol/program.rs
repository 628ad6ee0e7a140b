//! Programs by which controllers and agents replace themselves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Level};

/// The largest program, in bytes. A program with all its debugging information has a third of it.
pub const MAX_PROGRAM_BYTES: u64 = 1 << 30;

/// The most bytes of a version or an architecture.
pub const MAX_PROGRAM_TEXT: usize = 64;

/// The most bytes of the reason why a program was not taken.
pub const MAX_REASON: usize = 1_000;

/// A program that was uploaded, as an operator offers it to the controllers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramOffer {
    /// The SHA-256 of its file, which was uploaded as the content of a resource.
    pub digest: Digest,
    /// The version that it tells.
    pub version: String,
    /// The architecture that it runs on, such as `x86_64`.
    pub architecture: String,
    /// The highest level of stored forms that it knows.
    pub level: Level,
}

/// The program that all controllers and agents are to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ProgramTarget {
    /// The program.
    pub offer: ProgramOffer,
    /// The size of its file, in bytes.
    pub size: u64,
    /// The number of the target: each command that sets one has the next. A program that failed under one number is
    /// tried again under the next.
    pub number: u64,
    /// True once all controllers run it: from then on agents take it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub released: bool,
}

/// The program that a controller or an agent runs, as it reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RunningProgram {
    /// Its version.
    pub version: String,
    /// The SHA-256 of its file.
    pub digest: Digest,
    /// True while the process tries the program, and may go back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trial: bool,
    /// The last program that was not taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedProgram>,
}

/// A program that was not taken, or from which the process went back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct FailedProgram {
    /// The program.
    pub digest: Digest,
    /// The number of the target.
    pub number: u64,
    /// The reason, for people.
    pub reason: String,
}

impl RunningProgram {
    /// Returns true if the process runs the target, and does not merely try it.
    pub fn is(&self, target: &ProgramTarget) -> bool {
        self.digest == target.offer.digest && !self.trial
    }

    /// Returns the failure of the target, if the process has not taken it.
    pub fn failure_of(&self, target: &ProgramTarget) -> Option<&FailedProgram> {
        self.failed.as_ref().filter(|failed| failed.number == target.number && !self.is(target))
    }
}

impl std::fmt::Display for RunningProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.version, self.digest.short())
    }
}

impl std::fmt::Display for FailedProgram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "program {} failed: {}", self.digest.short(), self.reason)
    }
}
