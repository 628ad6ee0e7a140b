//! The access table: who may send which request. It is checked before anything else.

use periapt_host_api::{Refusal, command::Caller, offer::OfferAccess};

use super::Input;
use crate::{entity::Offer, root::ModelState};

/// The access of a user to a model. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelAccess {
    /// The user may read the model.
    Read,
    /// The user may change the model.
    Write,
    /// The user may do everything, including reading secrets.
    Admin,
}

/// Returns a caller's access to a model as a user, if it has any. There are no grants yet, so every user administers
/// every model.
pub fn model_access(_: &ModelState, caller: &Caller) -> Option<ModelAccess> {
    match caller {
        Caller::User(_) => Some(ModelAccess::Admin),
        Caller::Agent(_) | Caller::Runner { .. } | Caller::Worker => None,
    }
}

/// Refuses a caller whose access to the model is less than needed.
///
/// # Errors
/// Permission denied.
pub fn check_access(state: &ModelState, caller: &Caller, needed: ModelAccess) -> Result<(), Refusal> {
    match model_access(state, caller) {
        Some(access) if access >= needed => Ok(()),
        _ => Err(denied()),
    }
}

/// Returns a caller's access to an offer (`docs/hook-model.md` 7.8). An administrator of the offer's model has full
/// access; grants of less do not exist yet.
pub fn offer_access(state: &ModelState, _: &Offer, caller: &Caller) -> Option<OfferAccess> {
    match model_access(state, caller)? {
        ModelAccess::Admin => Some(OfferAccess::Admin),
        ModelAccess::Read | ModelAccess::Write => None,
    }
}

/// Returns the refusal for a caller without the permission. A caller that may not know of a thing gets the same
///
pub(crate) fn denied() -> Refusal {
    Refusal::permission_denied("permission denied")
}

/// Refuses a request that the caller's role may not send.
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
