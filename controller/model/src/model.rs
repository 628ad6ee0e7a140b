//! Models: made, configured, wound up.

pub(crate) mod cleanup;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod entity;
pub(crate) mod usage;
