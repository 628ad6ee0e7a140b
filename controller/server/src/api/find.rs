//! Models and users that a request names, and the refusals for those that the caller may not see.

use std::sync::Arc;

use periapt_host_api::{ErrorCode, Refusal, UserName, api::ModelSelector};
use periapt_model::{ModelState, Root};

use crate::api::caller::RequestCaller;

/// Parses a name in a path.
pub(crate) fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, Refusal> {
    text.parse().map_err(|error: T::Err| Refusal::bad_request(error.to_string()))
}

/// Returns the model that a selector names, of those that the caller may see. Of several models with a name it is the
/// caller's own; otherwise the name must be unique.
///
/// # Errors
/// The model does not exist, or the caller may not know of it; the refusals are the same.
pub(crate) fn find_model(
    root: &Root,
    who: &RequestCaller,
    selector: &ModelSelector,
) -> Result<Arc<ModelState>, Refusal> {
    let unknown =
        || Refusal::not_found(format!("model {selector} not found")).about(format!("model {selector}"));
    let seen = |state: &&Arc<ModelState>| who.sees(root, state);
    let name = match selector {
        ModelSelector::Uuid(uuid) => return root.model(uuid).filter(seen).cloned().ok_or_else(unknown),
        ModelSelector::Owned(owner, name) => {
            return root.model_named(owner, name).filter(seen).cloned().ok_or_else(unknown);
        }
        ModelSelector::Name(name) => name,
    };
    if let Some(own) = root.model_named(who.user()?, name).filter(seen) {
        return Ok(Arc::clone(own));
    }
    let named = root.models().map(|(_, state)| state).filter(|state| state.model().name == *name);
    let mut named = named.filter(seen);
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(Arc::clone(only)),
        (None, _) => Err(unknown()),
        (Some(_), Some(_)) => Err(Refusal::new(
            ErrorCode::Ambiguous,
            format!("several users have a model {name}; name it as USER/{name}, or by its UUID"),
        )),
    }
}

/// Returns the refusal for a user that does not exist, or that the caller may not see.
pub(crate) fn unknown_user(name: &UserName) -> Refusal {
    Refusal::not_found(format!("user {:?} not found", name.as_str())).about(format!("user {name}"))
}
