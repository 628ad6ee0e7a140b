//! Processes that outlive this one: started, recognised, ended.

mod detached;
mod id;
mod interrupts;
mod start_guard;

pub(crate) use detached::{Detached, FAILED, READY, Started};
pub(crate) use id::{Ended, ProcessId};
pub(crate) use interrupts::Interrupts;
pub(crate) use start_guard::{StartGuard, end_with_parent};
