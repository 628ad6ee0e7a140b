//! Processes that outlive this one: started, recognised, ended.

mod detached;
mod id;

pub(crate) use detached::{Detached, FAILED, READY, Started};
pub(crate) use id::{Ended, ProcessId};
