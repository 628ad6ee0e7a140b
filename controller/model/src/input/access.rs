//! Who may ask what: the one access table, consulted before anything else.

use periapt_host_api::{Refusal, command::Caller, offer::OfferAccess};

use super::Input;
use crate::{entity::Offer, root::ModelState};

/// What a user may do in a model; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelAccess {
    /// See it.
    Read,
    /// Change it.
    Write,
    /// All, what is secret included.
    Admin,
}

/// What a caller may do in a model as a user; none: nothing. There are no grants yet, so every user administers every
/// model.
pub fn model_access(_: &ModelState, caller: &Caller) -> Option<ModelAccess> {
    match caller {
        Caller::User(_) => Some(ModelAccess::Admin),
        Caller::Agent(_) | Caller::Runner { .. } | Caller::Worker => None,
    }
}

/// Refuses what a user would need more access to a model for.
///
/// # Errors
/// Permission denied.
pub fn check_access(state: &ModelState, caller: &Caller, needed: ModelAccess) -> Result<(), Refusal> {
    match model_access(state, caller) {
        Some(access) if access >= needed => Ok(()),
        _ => Err(denied()),
    }
}

/// Returns the access of a caller to an offer (`docs/hook-model.md` 7.8). An administrator of its model has all; there are no
/// grants of less yet.
pub fn offer_access(state: &ModelState, _: &Offer, caller: &Caller) -> Option<OfferAccess> {
    match model_access(state, caller)? {
        ModelAccess::Admin => Some(OfferAccess::Admin),
        ModelAccess::Read | ModelAccess::Write => None,
    }
}

/// The answer to whoever may not, and to whoever asks for what it may not know of.
pub(crate) fn denied() -> Refusal {
    Refusal::permission_denied("permission denied")
}

/// Refuses what a caller may not ask.
pub(crate) fn check(caller: &Caller, input: &Input) -> Result<(), Refusal> {
    let allowed = match (caller, input) {
        (
            Caller::User(_),
            Input::Controller(_) | Input::Model(..) | Input::UploadCharm(_) | Input::UploadResource(_),
        ) => true,
        (Caller::Agent(caller), Input::Register(agent, _)) => caller == agent,
        (Caller::Runner { model: own, .. }, Input::Runner(model, _)) => own == model,
        (Caller::Worker, Input::Worker(_)) => true,
        (Caller::User(_) | Caller::Agent(_) | Caller::Runner { .. } | Caller::Worker, _) => false,
    };
    if allowed { Ok(()) } else { Err(denied()) }
}
