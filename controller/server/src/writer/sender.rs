//! The senders of commands.

use periapt_host_api::{command::Caller, user::TokenScope};
use periapt_model::Origin;

/// The sender of a command: the caller, for a user's request its origin, which the audit log names, and the bounds of the
/// API token that proved the user.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) caller: Caller,
    pub(crate) origin: Option<Origin>,
    pub(crate) scope: Option<TokenScope>,
}

/// A sender whose commands are not audited: an agent, a runner, or the controller itself.
impl From<&Caller> for Sender {
    fn from(caller: &Caller) -> Self {
        Self { caller: caller.clone(), origin: None, scope: None }
    }
}
