//! Models: their creation, configuration and destruction.

pub(crate) mod cleanup;
pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod entity;
pub(crate) mod usage;
pub(crate) mod view;
