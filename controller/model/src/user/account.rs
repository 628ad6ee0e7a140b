//! The commands that make, change and remove users.

use periapt_host_api::{
    Digest, ErrorCode, Refusal, UserName,
    access::ControllerAccess,
    command::Caller,
    user::{FIRST_USER, MAX_DISPLAY_NAME},
};

use super::{
    entity::{PasswordHash, Registration, User},
    find::{find, is_first, put},
    session,
};
use crate::{
    access::check::denied,
    entity::EntityKey,
    input::Environment,
    root::{Root, changes::Changes},
};

/// The most users of a controller. All of them are in memory.
const MAX_USERS: usize = 1_000;

/// Returns the user that every controller has from its first start. It has no password: the operator on the
/// controller's own host opens its first session.
pub(crate) fn first(env: &Environment) -> Result<User, Refusal> {
    let name =
        UserName::new(FIRST_USER).map_err(|error| Refusal::new(ErrorCode::Internal, error.to_string()))?;
    Ok(User {
        display_name: name.to_string(),
        created_by: name.clone(),
        name,
        uuid: env.uuid(),
        access: Some(ControllerAccess::Superuser),
        disabled: false,
        password: None,
        registration: None,
        created_at: env.now,
        last_login: None,
        identity: None,
    })
}

pub(crate) fn add(
    root: &Root,
    caller: &Caller,
    name: &UserName,
    display_name: &str,
    registration: &Registration,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let Caller::User(creator) = caller else { return Err(denied()) };
    let cannot = |code, reason: String| {
        Refusal::new(code, format!("failed to create user: {reason}")).about(format!("user {name}"))
    };
    if root.user(name).is_some() {
        let reason = format!("user {:?} already exists", name.as_str());
        return Err(cannot(ErrorCode::AlreadyExists, reason));
    }
    if name.is_external() {
        let reason = "an external user is not added, but granted access".to_owned();
        return Err(cannot(ErrorCode::BadRequest, reason));
    }
    check_count(root)?;
    if display_name.len() > MAX_DISPLAY_NAME || display_name.contains(char::is_control) {
        let reason = format!("a display name has at most {MAX_DISPLAY_NAME} bytes and no control characters");
        return Err(cannot(ErrorCode::BadRequest, reason));
    }
    let display_name = if display_name.is_empty() { name.as_str() } else { display_name };
    Ok(put(User {
        name: name.clone(),
        uuid: env.uuid(),
        display_name: display_name.to_owned(),
        access: Some(ControllerAccess::Login),
        disabled: false,
        password: None,
        registration: Some(*registration),
        created_by: creator.clone(),
        created_at: env.now,
        last_login: None,
        identity: None,
    }))
}

/// Returns an external user who may log in at the issuer from now on.
pub(crate) fn external(
    root: &Root,
    caller: &Caller,
    name: &UserName,
    access: ControllerAccess,
    env: &Environment,
) -> Result<User, Refusal> {
    let Caller::User(creator) = caller else { return Err(denied()) };
    check_count(root)?;
    Ok(User {
        name: name.clone(),
        uuid: env.uuid(),
        display_name: name.to_string(),
        access: Some(access),
        disabled: false,
        password: None,
        registration: None,
        created_by: creator.clone(),
        created_at: env.now,
        last_login: None,
        identity: None,
    })
}

fn check_count(root: &Root) -> Result<(), Refusal> {
    match root.user_count() {
        count if count < MAX_USERS => Ok(()),
        _ => Err(Refusal::new(
            ErrorCode::QuotaExceeded,
            format!("failed to create user: a controller has at most {MAX_USERS} users"),
        )),
    }
}

/// Refuses a password for an external user, whom the issuer knows.
fn check_local(user: &User) -> Result<(), Refusal> {
    match user.name.is_external() {
        false => Ok(()),
        true => Err(Refusal::bad_request("an external user logs in at the issuer, and has no password here")
            .about(format!("user {}", user.name))),
    }
}

pub(crate) fn remove(root: &Root, name: &UserName) -> Result<Changes, Refusal> {
    let user = find(root, name)?;
    if is_first(user) {
        let text = format!("cannot delete controller owner {:?}", name.as_str());
        return Err(Refusal::conflict(text).about(format!("user {name}")));
    }
    let mut changes = session::close_all(root, name, None);
    changes.puts.insert(EntityKey::User(name.clone()), None);
    Ok(changes)
}

pub(crate) fn disable(root: &Root, name: &UserName) -> Result<Changes, Refusal> {
    let user = find(root, name)?;
    if is_first(user) {
        let text = format!("cannot disable controller owner {:?}", name.as_str());
        return Err(Refusal::conflict(text).about(format!("user {name}")));
    }
    let mut changes = session::close_all(root, name, None);
    changes.puts.extend(put(User { disabled: true, ..user.clone() }).puts);
    Ok(changes)
}

pub(crate) fn enable(root: &Root, name: &UserName) -> Result<Changes, Refusal> {
    Ok(put(User { disabled: false, ..find(root, name)?.clone() }))
}

/// Takes the password away, and gives the user the right to set another one.
pub(crate) fn reset_password(
    root: &Root,
    name: &UserName,
    registration: &Registration,
) -> Result<Changes, Refusal> {
    let user = find(root, name)?;
    check_local(user)?;
    let mut changes = session::close_all(root, name, None);
    let user = User { password: None, registration: Some(*registration), ..user.clone() };
    changes.puts.extend(put(user).puts);
    Ok(changes)
}

/// Sets the password, and ends all sessions but one: a caller who knew the old password loses its sessions.
pub(crate) fn set_password(
    root: &Root,
    name: &UserName,
    password: &PasswordHash,
    keep: Option<&Digest>,
) -> Result<Changes, Refusal> {
    let user = find(root, name)?;
    check_local(user)?;
    let mut changes = session::close_all(root, name, keep);
    let user = User { password: Some(password.clone()), registration: None, ..user.clone() };
    changes.puts.extend(put(user).puts);
    Ok(changes)
}
