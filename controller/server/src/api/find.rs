//! Models and users that a request names, and the refusals for those that the caller may not see.

use std::sync::Arc;

use periapt_host_api::{ErrorCode, ModelName, Refusal, UserName, api::ModelSelector, user::TokenScope};
use periapt_model::{
    ModelState, Root, active_user, entity::User, is_superuser, moved_refusal, readable_models,
};

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
    let unknown = || match find_moved(root, who, selector).and_then(|state| moved_refusal(state)) {
        Some(moved) => moved,
        None => Refusal::not_found(format!("model {selector} not found")).about(format!("model {selector}")),
    };
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
    let user = active_user(root, &who.caller).ok_or_else(unknown)?;
    let mut named = candidates(root, who, user, name).filter(seen);
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(Arc::clone(only)),
        (None, _) => Err(unknown()),
        (Some(_), Some(_)) => Err(Refusal::new(
            ErrorCode::Ambiguous,
            format!("several users have a model {name}; name it as USER/{name}, or by its UUID"),
        )),
    }
}

/// Returns the model that a selector names, of those that have moved to another controller and that the caller might see.
/// It looks at models alone that migrate or have moved.
pub(crate) fn find_moved<'a>(
    root: &'a Root,
    who: &RequestCaller,
    selector: &ModelSelector,
) -> Option<&'a Arc<ModelState>> {
    let is_named = |state: &Arc<ModelState>| {
        let model = state.model();
        match selector {
            ModelSelector::Uuid(uuid) => model.uuid == *uuid,
            ModelSelector::Owned(owner, name) => model.owner == *owner && model.name == *name,
            ModelSelector::Name(name) => model.name == *name,
        }
    };
    let moved = root.migrating_models().map(|(_, state)| state).filter(|state| state.has_moved());
    moved.into_iter().find(|state| is_named(state) && who.sees(root, state))
}

/// Returns the models that a caller may see, by id. It looks at those of the token's scope or of the user alone.
pub(crate) fn visible_models<'a>(root: &'a Root, who: &RequestCaller) -> Vec<&'a Arc<ModelState>> {
    let mut seen: Vec<_> = match who.scope() {
        Some(TokenScope { models, .. }) if !models.is_empty() => {
            models.iter().filter_map(|uuid| root.model(uuid)).filter(|state| who.sees(root, state)).collect()
        }
        _ => readable_models(root, &who.caller).filter(|state| who.sees(root, state)).collect(),
    };
    seen.sort_by_key(|state| state.model().uuid);
    seen.dedup_by_key(|state| state.model().uuid);
    seen
}

/// Returns models with a name, among them all that the caller may see: those of the token's scope, all for a superuser,
/// and else those that the user was granted.
fn candidates<'a>(
    root: &'a Root,
    who: &'a RequestCaller,
    user: &'a User,
    name: &'a ModelName,
) -> Box<dyn Iterator<Item = &'a Arc<ModelState>> + 'a> {
    match who.scope() {
        Some(TokenScope { models, .. }) if !models.is_empty() => {
            let models = models.iter().filter_map(|uuid| root.model(uuid));
            Box::new(models.filter(|state| state.model().name == *name))
        }
        _ if is_superuser(user) => Box::new(root.models_named(name)),
        _ => Box::new(root.granted_models_named(user, name)),
    }
}

/// Returns the refusal for a user that does not exist, or that the caller may not see.
pub(crate) fn unknown_user(name: &UserName) -> Refusal {
    Refusal::not_found(format!("user {:?} not found", name.as_str())).about(format!("user {name}"))
}

#[cfg(test)]
mod tests {
    use periapt_host_api::ModelUuid;

    use super::*;
    use crate::api::test_state::State;

    fn found(state: &State, who: &RequestCaller, selector: &str) -> Result<String, ErrorCode> {
        let found = find_model(&state.root, who, &selector.parse().unwrap());
        found.map(|state| state.model().owner.to_string()).map_err(|refusal| refusal.code)
    }

    #[test]
    fn a_model_is_found_by_name_among_those_that_the_caller_may_see_however_many_there_are() {
        let mut state = State::new();
        let name: ModelName = "blog".parse().unwrap();
        for number in 0..40 {
            let owner = format!("owner{number}");
            state.add_user(&owner);
            state.promote(&owner);
            state.add_model(&owner, "blog");
        }
        state.add_user("jane");
        let jane = state.log_in("jane", "1");
        assert_eq!(found(&state, &jane, "blog"), Err(ErrorCode::NotFound));
        let of = |state: &State, owner: &str| {
            state.root.model_named(&owner.parse().unwrap(), &name).unwrap().model().uuid
        };
        state.grant(of(&state, "owner7"), "jane");
        assert_eq!(found(&state, &jane, "blog").as_deref(), Ok("owner7"));
        let user = active_user(&state.root, &jane.caller).unwrap();
        assert_eq!(candidates(&state.root, &jane, user, &name).count(), 1, "models that were looked at");
        assert_eq!(found(&state, &jane, "owner8/blog"), Err(ErrorCode::NotFound));

        state.grant(of(&state, "owner9"), "jane");
        assert_eq!(found(&state, &jane, "blog"), Err(ErrorCode::Ambiguous));
        let mut scoped = jane.clone();
        let scope = TokenScope {
            access: periapt_host_api::access::ModelAccess::Read,
            models: vec![of(&state, "owner9"), of(&state, "owner3")],
        };
        scoped.session.as_mut().unwrap().scope = Some(scope);
        assert_eq!(found(&state, &scoped, "blog").as_deref(), Ok("owner9"));
        let admin = state.log_in("admin", "2");
        assert_eq!(found(&state, &admin, "blog"), Err(ErrorCode::Ambiguous));
        state.add_model("admin", "blog");
        assert_eq!(found(&state, &admin, "blog").as_deref(), Ok("admin"), "the caller's own");
    }

    #[test]
    fn a_listing_holds_the_models_of_the_user_within_the_scope_of_the_token() {
        let mut state = State::new();
        state.add_user("jane");
        let models: Vec<_> = ["one", "two", "three"].map(|name| state.add_model("admin", name)).into();
        let (jane, admin) = (state.log_in("jane", "1"), state.log_in("admin", "2"));
        state.grant(models[0], "jane");
        state.grant(models[1], "jane");
        let listed = |who: &RequestCaller| -> Vec<String> {
            let seen = visible_models(&state.root, who);
            let mut names: Vec<_> = seen.iter().map(|state| state.model().name.to_string()).collect();
            names.sort();
            names
        };
        let scoped = |who: &RequestCaller, models: &[ModelUuid]| {
            let access = periapt_host_api::access::ModelAccess::Read;
            let mut scoped = who.clone();
            scoped.session.as_mut().unwrap().scope = Some(TokenScope { access, models: models.to_vec() });
            scoped
        };
        assert_eq!(listed(&jane), ["one", "two"]);
        assert_eq!(listed(&admin), ["one", "three", "two"]);
        assert_eq!(
            listed(&scoped(&jane, &[models[1], models[2]])),
            ["two"],
            "of the scope, what the user may see"
        );
        assert_eq!(listed(&scoped(&admin, &[models[2], models[2]])), ["three"]);
        assert_eq!(
            listed(&scoped(&jane, &[])),
            ["one", "two"],
            "a scope without models is for all of the user's"
        );
    }
}
