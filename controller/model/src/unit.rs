//! Units: their creation, errors, removal, stored state and pending events.

pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod event;
pub(crate) mod life;
pub(crate) mod new;
pub(crate) mod state;
pub(crate) mod view;
pub(crate) mod workloads;
