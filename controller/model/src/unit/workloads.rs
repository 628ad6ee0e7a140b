//! The state of units' workloads, as agents report it (decision 93).

pub(crate) mod commit;
pub(crate) mod entity;
pub(crate) mod status;
