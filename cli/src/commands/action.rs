//! Actions and hook tools: listed, explained, run, followed, cancelled.

mod cancel;
mod exec;
mod help;
mod list;
mod operations;
mod parameters;
mod run;
mod show;
mod shown;
mod task;
mod waiting;

pub(crate) use cancel::CancelTask;
pub(crate) use exec::Exec;
pub(crate) use help::{HelpActionCommands, HelpHookCommands};
pub(crate) use list::Actions;
pub(crate) use operations::{Operations, ShowOperation};
pub(crate) use run::Run;
pub(crate) use show::ShowAction;
pub(crate) use task::ShowTask;
