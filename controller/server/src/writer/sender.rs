//! The senders of commands.

use periapt_host_api::command::Caller;
use periapt_model::Origin;

/// The sender of a command: the caller, and for a user's request its origin, which the audit log names.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) caller: Caller,
    pub(crate) origin: Option<Origin>,
}

/// A sender whose commands are not audited: an agent, a runner, or the controller itself.
impl From<&Caller> for Sender {
    fn from(caller: &Caller) -> Self {
        Self { caller: caller.clone(), origin: None }
    }
}
