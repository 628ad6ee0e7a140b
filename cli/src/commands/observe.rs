//! Status, logs and journal of a model, and verbs that unblock its units.

mod cancel_event;
mod debug_log;
mod hooks;
mod logs;
mod outcome;
mod replay_hook;
mod resolved;
mod show_application;
mod show_status_log;
mod show_unit;
mod status;
mod usage;
mod wait_for;

use super::{Verb, verbs};

verbs! {
    /// Status, logs and journal of a model, and verbs that unblock its units.
    Observe {
        status::Status,
        show_unit::ShowUnit,
        show_application::ShowApplication,
        show_status_log::ShowStatusLog,
        hooks::Hooks,
        replay_hook::ReplayHook,
        usage::Usage,
        debug_log::DebugLog,
        logs::Logs,
        wait_for::WaitFor,
        resolved::Resolved,
        cancel_event::CancelEvent,
    }
}
