//! What a model does, and what helps where it is stuck.

pub(crate) mod cancel_event;
pub(crate) mod debug_log;
pub(crate) mod hooks;
pub(crate) mod resolved;
pub(crate) mod show_application;
pub(crate) mod show_status_log;
pub(crate) mod show_unit;
pub(crate) mod status;
pub(crate) mod usage;
pub(crate) mod wait_for;
