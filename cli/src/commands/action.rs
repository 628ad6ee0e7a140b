//! Actions: listed, run, followed, cancelled.

mod cancel;
mod list;
mod operations;
mod parameters;
mod run;
mod shown;
mod task;

pub(crate) use cancel::CancelTask;
pub(crate) use list::Actions;
pub(crate) use operations::{Operations, ShowOperation};
pub(crate) use run::Run;
pub(crate) use task::ShowTask;
