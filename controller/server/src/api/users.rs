//! The routes `/v1/users`.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
};
use http::HeaderMap;
use periapt_host_api::{
    UserName,
    command::Answer,
    token::{Token, TokenKind},
    user::{IssuedRegistration, NewPassword, NewUser, SessionDetails, UserDetails},
};
use periapt_model::{IdentityCommand, entity::Registration, sessions as sessions_of, user_details, users};

use crate::{
    api::{
        body,
        caller::RequestCaller,
        failure::HandlerResult,
        find::{parsed, unknown_user},
        request::{requested, submit_identity},
    },
    clock::Clock,
    login::{Logins, REGISTRATION_SECONDS, after},
    state::{Durable, Submission},
};

/// Returns the users that the caller may see.
pub(crate) async fn list(
    State(durable): State<Durable>,
    who: RequestCaller,
) -> HandlerResult<Json<Vec<UserDetails>>> {
    Ok(Json(users(&durable.current().root, &who.caller)))
}

/// Returns one user.
pub(crate) async fn one(
    State(durable): State<Durable>,
    Path(user): Path<String>,
) -> HandlerResult<Json<UserDetails>> {
    let name: UserName = parsed(&user)?;
    let root = &durable.current().root;
    Ok(Json(root.user(&name).map(user_details).ok_or_else(|| unknown_user(&name))?))
}

/// Returns the sessions and API tokens of a user.
pub(crate) async fn sessions(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(user): Path<String>,
) -> HandlerResult<Json<Vec<SessionDetails>>> {
    let name: UserName = parsed(&user)?;
    let root = &durable.current().root;
    if root.user(&name).is_none() {
        return Err(unknown_user(&name).into());
    }
    Ok(Json(sessions_of(root, &name, who.session.as_ref().map(|session| &session.token))))
}

/// Makes a user, and returns the token by which the user sets a password.
pub(crate) async fn add(
    State(submission): State<Submission>,
    State(logins): State<Logins>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<IssuedRegistration>> {
    let asked: NewUser = body::value(&submission, &headers, content).await?;
    let requested = requested(&who, &submission.sealer.key, ("add-user", 0), &asked)?;
    let NewUser { name, display_name } = asked;
    let (token, registration) = draw(&logins, &*clock);
    let command = IdentityCommand::AddUser { name: name.clone(), display_name, registration };
    let issued = IssuedRegistration { user: name, token, expires_at: registration.expires_at };
    Ok(Json(submit_identity(&submission, &who, requested, command, issued).await?))
}

/// Takes a user's password away, and returns the token by which the user sets another one.
pub(crate) async fn reset(
    State(submission): State<Submission>,
    State(logins): State<Logins>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
    Path(user): Path<String>,
) -> HandlerResult<Json<IssuedRegistration>> {
    let user: UserName = parsed(&user)?;
    let requested = requested(&who, &submission.sealer.key, ("reset-password", 0), &user)?;
    let (token, registration) = draw(&logins, &*clock);
    let command = IdentityCommand::ResetPassword { user: user.clone(), registration };
    let issued = IssuedRegistration { user, token, expires_at: registration.expires_at };
    Ok(Json(submit_identity(&submission, &who, requested, command, issued).await?))
}

/// Sets a user's password. The other sessions of the user end.
pub(crate) async fn set_password(
    State(submission): State<Submission>,
    State(logins): State<Logins>,
    who: RequestCaller,
    Path(user): Path<String>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<Answer>> {
    let user: UserName = parsed(&user)?;
    let asked: NewPassword = body::value(&submission, &headers, content).await?;
    let requested = requested(&who, &submission.sealer.key, ("set-password", 0), &(&user, &asked))?;
    let NewPassword { password } = asked;
    if submission.durable.current().root.user(&user).is_none() {
        return Err(unknown_user(&user).into());
    }
    let password = logins.passwords.hash(password).await?;
    let own = who.session.as_ref().filter(|session| session.scope.is_none());
    let session = own.map(|session| session.token);
    let command = IdentityCommand::SetPassword { user, password, session };
    Ok(Json(submit_identity(&submission, &who, requested, command, Answer::Done).await?))
}

/// Draws a registration token.
fn draw(logins: &Logins, clock: &dyn Clock) -> (Token, Registration) {
    let token = logins.token(TokenKind::Registration);
    let expires_at = after(clock.now(), REGISTRATION_SECONDS);
    let registration = Registration { token: token.digest(), expires_at };
    (token, registration)
}
