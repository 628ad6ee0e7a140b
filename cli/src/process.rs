//! Processes that outlive this one: started, recognised, ended.

mod detached;
mod id;

pub(crate) use detached::{Detached, READY, Started};
pub(crate) use id::{Ended, ProcessId};
