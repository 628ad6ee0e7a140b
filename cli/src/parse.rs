//! What several verbs read from a command line.

pub(crate) mod duration;
pub(crate) mod offer;
pub(crate) mod removal;
pub(crate) mod settings;
