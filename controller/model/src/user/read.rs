//! Users, sessions and the users of a model, as the API shows them.

use periapt_host_api::{
    Digest, UserName,
    command::Caller,
    user::{ModelUser, SessionDetails, SessionId, UserDetails},
};

use super::entity::{Session, SessionKind, User};
use crate::{
    access::{
        check::{Subject, active_user, granted, is_allowed, is_superuser},
        table::Right,
    },
    root::{ModelState, Root},
};

/// Returns the users that a caller may see, by name. Only superusers see others than themselves.
pub fn users(root: &Root, caller: &Caller) -> Vec<UserDetails> {
    let Some(own) = active_user(root, caller) else { return Vec::new() };
    let seen = |user: &&User| is_allowed(root, caller, Right::ReadUser, Subject::User(&user.name));
    match is_superuser(own) {
        true => root.users().filter(seen).map(user_details).collect(),
        false => Some(own).filter(seen).map(user_details).into_iter().collect(),
    }
}

/// Returns a user as the API shows it.
pub fn user_details(user: &User) -> UserDetails {
    UserDetails {
        name: user.name.clone(),
        display_name: user.display_name.clone(),
        access: user.access,
        created_by: user.created_by.clone(),
        created_at: user.created_at,
        last_login: user.last_login,
        disabled: user.disabled,
        registered: user.password.is_some() || user.identity.is_some(),
    }
}

/// Returns the sessions and API tokens of a user, the newest first. `current` is the session of the request.
pub fn sessions(root: &Root, user: &UserName, current: Option<&Digest>) -> Vec<SessionDetails> {
    let mut found: Vec<&Session> = root.sessions_of(user).collect();
    found.sort_by_key(|session| std::cmp::Reverse(session.created_at));
    let shown = |session: &Session| {
        let (name, scope) = match &session.kind {
            SessionKind::Login => (None, None),
            SessionKind::Api { name, scope } => (Some(name.clone()), Some(scope.clone())),
        };
        SessionDetails {
            id: SessionId::of(&session.token),
            user: session.user.clone(),
            name,
            scope,
            address: session.address.clone(),
            created_at: session.created_at,
            expires_at: session.expires_at,
            current: current == Some(&session.token),
        }
    };
    found.into_iter().map(shown).collect()
}

/// Returns the users who were granted access to a model, by name.
pub fn model_users(root: &Root, state: &ModelState) -> Vec<ModelUser> {
    let shown = |user: &User| {
        Some(ModelUser {
            name: user.name.clone(),
            display_name: user.display_name.clone(),
            access: granted(state, user)?,
            last_login: user.last_login,
        })
    };
    state.grants().filter_map(|grant| shown(root.user(&grant.user)?)).collect()
}
