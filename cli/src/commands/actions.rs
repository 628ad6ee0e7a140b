//! Actions and commands on units.

pub(crate) mod cancel;
pub(crate) mod exec;
pub(crate) mod list;
pub(crate) mod operations;
pub(crate) mod parameters;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod shown;
pub(crate) mod task;
pub(crate) mod waiting;
