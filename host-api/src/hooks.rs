//! What a unit is told, what its hooks and actions do, and what is remembered and counted of them.

pub mod action;
pub mod commit;
pub mod event;
pub mod exec;
pub mod journal;
pub mod pending;
pub mod record;
pub mod state;
pub mod usage;
