//! Machines: their assignment to units, removal and status.

pub(crate) mod assign;
pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod failover;
pub(crate) mod life;
pub(crate) mod status;
pub(crate) mod view;
