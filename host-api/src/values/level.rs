//! The level of what controllers store.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The highest level that this program knows.
///
/// Level 2 stores the level itself with the controller, the controllers of a log, the program that all are to run, models
/// that migrate, the containers of charms, images of resources, the progress of units on their workloads, the state of
/// units' workloads with their usage, limits on workloads and quotas of them, and the destinations that workloads are
/// granted, and takes reports of containers. A change that stores what a program of the level before would not read, or
/// would drop when it writes again, raises this number and names the change here; what stores it is refused below the
/// level.
pub const LEVEL: Level = Level(2);

/// The version of what is stored, in a store and in the log of several controllers. Programs that know a level read all
/// that is stored at it. It never falls, and it is raised only once each controller's program knows the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Level(pub u32);

impl Level {
    /// The level of stores and programs that name none.
    pub const FIRST: Self = Self(1);

    /// Returns true for the first level, which is not written.
    pub fn is_first(&self) -> bool {
        *self <= Self::FIRST
    }
}

impl Default for Level {
    fn default() -> Self {
        Self::FIRST
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
