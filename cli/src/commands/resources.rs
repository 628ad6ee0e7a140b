//! Resources of applications.

pub(crate) mod attach;
pub(crate) mod list;
