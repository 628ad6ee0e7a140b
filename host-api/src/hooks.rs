//! Events, the effects of hooks and actions, the unit's record, the journal and usage counters.

pub mod action;
pub mod commit;
pub mod event;
pub mod exec;
pub mod journal;
pub mod notice;
pub mod pending;
pub mod record;
pub mod state;
pub mod usage;
