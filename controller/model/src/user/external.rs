//! Logins of external users, whom an issuer of identities has proved.

use periapt_host_api::{ErrorCode, Refusal, user::MAX_DISPLAY_NAME};

use super::{entity::User, session::open_for};
use crate::{
    input::{Environment, IssuerLogin, NewSession},
    root::{Root, changes::Changes},
};

/// Returns the user of a verified login.
///
/// # Errors
/// The user was granted no access, is disabled, or logged in with another account before. The account is proved, so the
/// refusal says which.
pub fn user_at_issuer<'a>(root: &'a Root, login: &IssuerLogin) -> Result<&'a User, Refusal> {
    let name = &login.user;
    let refused =
        |text: String| Refusal::new(ErrorCode::PermissionDenied, text).about(format!("user {name}"));
    // No account at the issuer becomes a local user.
    let known = root.user(name).filter(|user| user.name.is_external() && user.access.is_some());
    let user = known.ok_or_else(|| {
        refused(format!(
            "user {:?} has no access to this controller: an administrator grants it `login`",
            name.as_str()
        ))
    })?;
    if user.disabled {
        return Err(refused(format!("user {:?} is disabled", name.as_str())));
    }
    match &user.identity {
        Some(known) if *known != login.identity => Err(refused(format!(
            "user {:?} is another account than the one that logged in before: an administrator removes the user, and \
             grants access anew, if the new account is to have the name",
            name.as_str()
        ))),
        _ => Ok(user),
    }
}

/// Opens a session after a login at the issuer. From the first one on, the user is that account.
pub(crate) fn log_in(
    root: &Root,
    login: &IssuerLogin,
    session: &NewSession,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let mut user = User { identity: Some(login.identity.clone()), ..user_at_issuer(root, login)?.clone() };
    let fits = |name: &&String| {
        !name.is_empty() && name.len() <= MAX_DISPLAY_NAME && !name.contains(char::is_control)
    };
    if let Some(name) = login.display_name.as_ref().filter(fits) {
        user.display_name.clone_from(name);
    }
    open_for(root, &user, session, env)
}
