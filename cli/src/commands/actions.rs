//! Actions and commands on units.

mod cancel;
mod exec;
mod follow;
mod list;
mod operations;
mod parameters;
mod restart;
mod run;
mod session;
mod show;
mod shown;
mod task;
mod waiting;

use super::{Verb, verbs};

verbs! {
    /// Actions and commands on units.
    Actions {
        list::Actions,
        show::ShowAction,
        run::Run,
        exec::Exec,
        restart::Restart,
        operations::Operations,
        operations::ShowOperation,
        task::ShowTask,
        cancel::CancelTask,
    }
}
