//! Resources: uploaded, given to applications, read by units.

pub(crate) mod command;
pub(crate) mod content;
pub(crate) mod entity;
