//! The controller itself, and the data that Juju's clients store in it.

pub(crate) mod clouds;
pub(crate) mod entity;
pub(crate) mod level;
pub(crate) mod members;
pub(crate) mod program;
pub(crate) mod start;
