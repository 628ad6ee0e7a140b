//! Who may ask what: the one access table, consulted before anything else.

use periapt_host_api::{Refusal, command::Caller};

use crate::input::Input;

/// The answer to whoever may not, and to whoever asks for what it may not know of.
pub(crate) fn denied() -> Refusal {
    Refusal::permission_denied("permission denied")
}

/// Refuses what a caller may not ask.
pub(crate) fn check(caller: &Caller, input: &Input) -> Result<(), Refusal> {
    let allowed = match (caller, input) {
        (Caller::User(_), Input::Controller(_) | Input::Model(..) | Input::UploadCharm(_)) => true,
        (Caller::Agent(caller), Input::Register(agent, _)) => caller == agent,
        (Caller::Runner { model: own, .. }, Input::Runner(model, _)) => own == model,
        (Caller::Worker, Input::Worker(_)) => true,
        (Caller::User(_) | Caller::Agent(_) | Caller::Runner { .. } | Caller::Worker, _) => false,
    };
    if allowed { Ok(()) } else { Err(denied()) }
}
