//! Units: added, resolved, removed; what they store, and the events that they wait for.

pub(crate) mod command;
pub(crate) mod entity;
pub(crate) mod event;
pub(crate) mod life;
pub(crate) mod new;
pub(crate) mod state;
