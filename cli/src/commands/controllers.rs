//! Controllers, and the agents that serve them.

pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod bootstrap;
pub(crate) mod controller;
pub(crate) mod destroy;
pub(crate) mod list;
pub(crate) mod show;
pub(crate) mod unregister;
