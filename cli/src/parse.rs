//! What several verbs read from a command line.

pub(crate) mod base;
pub(crate) mod bindings;
pub(crate) mod cloud;
pub(crate) mod constraints;
pub(crate) mod credential;
pub(crate) mod duration;
pub(crate) mod offer;
pub(crate) mod placement;
pub(crate) mod removal;
pub(crate) mod settings;
pub(crate) mod storage;
