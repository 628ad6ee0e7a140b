//! Progress of changes at a controller until they are done, and streams of lines.

pub(crate) mod destroyed;
pub(crate) mod merge;
pub(crate) mod removal;
pub(crate) mod status;
pub(crate) mod workload_logs;
