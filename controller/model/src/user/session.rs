//! Sessions and API tokens: opened, proved, closed and expired.

use periapt_host_api::{
    Digest, ErrorCode, Refusal, Timestamp, UserName,
    command::Caller,
    user::{MAX_DISPLAY_NAME, SessionId},
};

use super::{
    entity::{PasswordHash, Session, SessionKind, User},
    find::{find, put},
};
use crate::{
    access::check::denied,
    entity::EntityKey,
    input::{Environment, NewSession},
    root::{Root, changes::Changes},
};

/// The most sessions of a user. With API tokens, all of them are deleted in one commit.
const MAX_SESSIONS: usize = 32;

/// The most API tokens of a user.
const MAX_TOKENS: usize = 32;

/// The most expired sessions that one step of the worker deletes.
const EXPIRED_STEP: usize = 50;

/// Returns the session and the user that a token proves, if neither has ended. The caller computes the digest of the
/// token that a request brings.
pub fn authenticate<'a>(root: &'a Root, token: &Digest, now: Timestamp) -> Option<(&'a User, &'a Session)> {
    let session = root.session(token).filter(|session| session.expires_at > now)?;
    let user = root.user(&session.user)?;
    (user.uuid == session.user_uuid && user.may_log_in()).then_some((user, session))
}

/// Returns the user who may set a password with a registration token, if it is pending.
fn registering<'a>(root: &'a Root, token: &Digest, now: Timestamp) -> Option<&'a User> {
    let is_pending = |user: &&User| user.registration.is_some_and(|pending| pending.expires_at > now);
    root.registering(token).filter(is_pending).filter(|user| user.may_log_in())
}

/// Returns true if a registration token is pending.
pub fn may_register(root: &Root, token: &Digest, now: Timestamp) -> bool {
    registering(root, token, now).is_some()
}

/// Returns the refusal of a registration. It does not tell if the token was ever issued.
pub fn wrong_registration() -> Refusal {
    let text = "the registration token is unknown, used or expired: ask an administrator for another one";
    Refusal::new(ErrorCode::NotLoggedIn, text)
}

/// Sets the first password with a registration token, and opens a session.
pub(crate) fn register(
    root: &Root,
    token: &Digest,
    password: &PasswordHash,
    session: &NewSession,
    env: &Environment,
) -> Result<(Changes, UserName), Refusal> {
    let user = registering(root, token, env.now).ok_or_else(wrong_registration)?;
    let mut changes = close_all(root, &user.name, None);
    let registered = User {
        password: Some(password.clone()),
        registration: None,
        last_login: Some(env.now),
        ..user.clone()
    };
    changes.puts.extend(put(registered).puts);
    insert(&mut changes, user, session, env);
    Ok((changes, user.name.clone()))
}

/// Opens a session after a login by password. `verified` is the hash that the password was checked against: another
/// password may have been set meanwhile.
pub(crate) fn log_in(
    root: &Root,
    name: &UserName,
    verified: &PasswordHash,
    session: &NewSession,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let user = root.user(name).filter(|user| user.may_log_in() && user.password.as_ref() == Some(verified));
    let user = user.ok_or_else(wrong_password)?;
    open_for(root, user, session, env)
}

/// Returns the refusal of a login. It does not tell if the user exists.
pub fn wrong_password() -> Refusal {
    Refusal::new(ErrorCode::NotLoggedIn, "invalid entity name or password")
}

/// Opens a session or makes an API token for the caller itself.
pub(crate) fn open_own(
    root: &Root,
    caller: &Caller,
    session: &NewSession,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let Caller::User(name) = caller else { return Err(denied()) };
    open_for(root, find(root, name)?, session, env)
}

pub(super) fn open_for(
    root: &Root,
    user: &User,
    session: &NewSession,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let mut changes = Changes::default();
    let own = || root.sessions_of(&user.name);
    match &session.kind {
        SessionKind::Login => {
            let mut logins: Vec<_> = own().filter(|known| known.kind == SessionKind::Login).collect();
            logins.sort_by_key(|known| known.created_at);
            let surplus = (logins.len() + 1).saturating_sub(MAX_SESSIONS);
            for oldest in logins.into_iter().take(surplus) {
                changes.puts.insert(EntityKey::Session(oldest.token), None);
            }
            changes.puts.extend(put(User { last_login: Some(env.now), ..user.clone() }).puts);
        }
        SessionKind::Api { name, .. } => check_token_name(own(), name)?,
    }
    insert(&mut changes, user, session, env);
    Ok(changes)
}

fn check_token_name<'a>(own: impl Iterator<Item = &'a Session>, wanted: &str) -> Result<(), Refusal> {
    if wanted.is_empty() || wanted.len() > MAX_DISPLAY_NAME || wanted.contains(char::is_control) {
        let text = format!("a token's name has 1 to {MAX_DISPLAY_NAME} bytes and no control characters");
        return Err(Refusal::bad_request(text));
    }
    let mut count = 0;
    for known in own {
        if let SessionKind::Api { name, .. } = &known.kind {
            if name == wanted {
                return Err(Refusal::already_exists(format!("API token {wanted:?} already exists")));
            }
            count += 1;
        }
    }
    if count >= MAX_TOKENS {
        let text = format!("a user has at most {MAX_TOKENS} API tokens");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
    }
    Ok(())
}

fn insert(changes: &mut Changes, user: &User, session: &NewSession, env: &Environment) {
    let opened = Session {
        token: session.token,
        user: user.name.clone(),
        user_uuid: user.uuid,
        kind: session.kind.clone(),
        address: session.address.clone(),
        created_at: env.now,
        expires_at: session.expires_at,
    };
    changes.puts.insert(EntityKey::Session(opened.token), Some(opened.into()));
}

/// Closes a session. Returns nothing to do if the session has ended meanwhile.
pub(crate) fn close(root: &Root, id: &SessionId) -> Changes {
    let mut changes = Changes::default();
    if let Some(session) = root.session_with(id) {
        changes.puts.insert(EntityKey::Session(session.token), None);
    }
    changes
}

/// Closes all sessions and API tokens of a user but one.
pub(crate) fn close_all(root: &Root, user: &UserName, keep: Option<&Digest>) -> Changes {
    let mut changes = Changes::default();
    for session in root.sessions_of(user).filter(|session| Some(&session.token) != keep) {
        changes.puts.insert(EntityKey::Session(session.token), None);
    }
    changes
}

/// Deletes sessions that have ended by time, as many as one step may.
pub(crate) fn forget_expired(root: &Root, env: &Environment) -> Changes {
    let mut changes = Changes::default();
    for (_, token) in root.session_ends().take_while(|(end, _)| *end <= env.now).take(EXPIRED_STEP) {
        changes.puts.insert(EntityKey::Session(*token), None);
    }
    changes
}
