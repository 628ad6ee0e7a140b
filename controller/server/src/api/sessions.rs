//! The routes by which users prove who they are: logins, registrations, sessions and API tokens.

use std::sync::Arc;

use axum::{Json, body::Body, extract::State};
use http::HeaderMap;
use periapt_host_api::{
    Digest, ErrorCode, Refusal, UserName,
    command::{Answer, Caller, ControllerCommand},
    token::{Token, TokenKind},
    user::{IssuedSession, NewApiToken, PasswordLogin, SessionId, UseRegistration, UserDetails},
};
use periapt_model::{
    IdentityCommand, Input, NewSession, Origin, Output, entity::SessionKind, may_register, user_details,
    wrong_password, wrong_registration,
};

use crate::{
    api::{
        body,
        caller::{RequestCaller, denied},
        connection::Peer,
        failure::HandlerResult,
        find::unknown_user,
        request::{requested, submit_identity},
    },
    clock::Clock,
    login::{Attempt, Logins, MAX_TOKEN_SECONDS, SESSION_SECONDS, after},
    network::Network,
    refusals::{Refusals, RefusedRequest},
    state::{Durable, Submission},
    writer::{QueueKey, Sender},
};

/// Opens a session by a password.
pub(crate) async fn log_in(
    State(submission): State<Submission>,
    State(logins): State<Logins>,
    State(refusals): State<Refusals>,
    State(clock): State<Arc<dyn Clock>>,
    peer: Peer,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<IssuedSession>> {
    let PasswordLogin { user, password } = body::value(&submission, &headers, content).await?;
    let failed = |refusal: Refusal| {
        refusals.note(unproved(&peer, "log-in", format!("user {user}"), refusal.code), clock.now());
        refusal
    };
    let attempt = Attempt { name: user.clone(), network: Network::of(peer.ip()) };
    logins.throttle.begin(&attempt, clock.monotonic_ms()).map_err(failed)?;
    let known = submission.durable.current().root.user(&user).and_then(|user| user.password.clone());
    if !logins.passwords.verify(password, known.clone()).await? {
        return Err(failed(wrong_password()).into());
    }
    let verified = known.ok_or_else(|| failed(wrong_password()))?;
    let prepared = PreparedSession::new(&logins, &*clock, &peer);
    let command = IdentityCommand::LogIn { user, verified, session: prepared.session() };
    let issued = prepared.open(&submission, command).await?;
    logins.throttle.succeeded(&attempt);
    Ok(Json(issued))
}

/// Returns a refused request whose caller proved no identity.
pub(super) fn unproved(peer: &Peer, act: &str, subject: String, code: ErrorCode) -> RefusedRequest {
    let network = Some(Network::of(peer.ip()));
    RefusedRequest { user: None, session: None, network, act: act.to_owned(), subject, code }
}

/// Sets the first password by a registration token, and opens a session.
pub(crate) async fn register(
    State(submission): State<Submission>,
    State(logins): State<Logins>,
    State(refusals): State<Refusals>,
    State(clock): State<Arc<dyn Clock>>,
    peer: Peer,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<IssuedSession>> {
    let UseRegistration { token, password } = body::value(&submission, &headers, content).await?;
    // With a token that was never issued, no caller makes the controller hash passwords.
    if !may_register(&submission.durable.current().root, &token.digest(), clock.now()) {
        let refusal = wrong_registration();
        refusals.note(unproved(&peer, "register", String::new(), refusal.code), clock.now());
        return Err(refusal.into());
    }
    let password = logins.passwords.hash(password).await?;
    let prepared = PreparedSession::new(&logins, &*clock, &peer);
    let command =
        IdentityCommand::Register { registration: token.digest(), password, session: prepared.session() };
    Ok(Json(prepared.open(&submission, command).await?))
}

/// Ends the session of the request.
pub(crate) async fn log_out(
    State(submission): State<Submission>,
    who: RequestCaller,
) -> HandlerResult<Json<Answer>> {
    let own =
        who.session.as_ref().ok_or_else(|| Refusal::bad_request("the request has no session to end"))?;
    let close = ControllerCommand::CloseSession { session: SessionId::of(&own.token) };
    // An API token may end itself, whatever its scope.
    let sender = Sender { scope: None, ..who.sender() };
    submission.commands.submit_one(QueueKey::Controller, sender, Input::Controller(close), 0).await?;
    Ok(Json(Answer::Done))
}

/// Returns the user of the request.
pub(crate) async fn whoami(
    State(durable): State<Durable>,
    who: RequestCaller,
) -> HandlerResult<Json<UserDetails>> {
    let name = who.user()?;
    let root = &durable.current().root;
    Ok(Json(root.user(name).map(user_details).ok_or_else(|| unknown_user(name))?))
}

/// Opens a session for a caller who is known without one: the operator on the controller's own host.
pub(crate) async fn open(
    State(submission): State<Submission>,
    State(logins): State<Logins>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
    peer: Peer,
) -> HandlerResult<Json<IssuedSession>> {
    let user = who.user()?.clone();
    if who.session.is_some() {
        return Err(Refusal::bad_request("a session opens no other session; log in by the password").into());
    }
    let requested = requested(&who, &submission.sealer.key, ("open-session", 0), &())?;
    let prepared = PreparedSession::new(&logins, &*clock, &peer);
    let command = IdentityCommand::OpenSession { session: prepared.session() };
    let issued = prepared.issued(user);
    Ok(Json(submit_identity(&submission, &who, requested, command, issued).await?))
}

/// Makes an API token.
pub(crate) async fn make_token(
    State(submission): State<Submission>,
    State(logins): State<Logins>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
    peer: Peer,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<IssuedSession>> {
    let user = who.user()?.clone();
    let asked: NewApiToken = body::value(&submission, &headers, content).await?;
    let requested = requested(&who, &submission.sealer.key, ("make-token", 0), &asked)?;
    let NewApiToken { name, scope, lifetime_seconds } = asked;
    if !(1..=MAX_TOKEN_SECONDS).contains(&lifetime_seconds) {
        let text = format!("an API token lives 1 to {MAX_TOKEN_SECONDS} seconds, not {lifetime_seconds}");
        return Err(Refusal::bad_request(text).into());
    }
    if scope.models.len() > MAX_SCOPE_MODELS {
        let text = format!("a scope names at most {MAX_SCOPE_MODELS} models");
        return Err(Refusal::bad_request(text).into());
    }
    let prepared = PreparedSession {
        token: logins.token(TokenKind::Api),
        kind: SessionKind::Api { name, scope },
        expires_at: after(clock.now(), lifetime_seconds),
        address: peer.ip().to_string(),
    };
    let command = IdentityCommand::OpenSession { session: prepared.session() };
    let issued = prepared.issued(user);
    Ok(Json(submit_identity(&submission, &who, requested, command, issued).await?))
}

/// The most models that a token's scope names. They are part of its entity.
const MAX_SCOPE_MODELS: usize = 100;

/// A session that is about to be opened, with its token in clear text.
pub(super) struct PreparedSession {
    token: Token,
    kind: SessionKind,
    expires_at: periapt_host_api::Timestamp,
    address: String,
}

impl PreparedSession {
    /// Draws the session of a person.
    pub(super) fn new(logins: &Logins, clock: &dyn Clock, peer: &Peer) -> Self {
        Self {
            token: logins.token(TokenKind::Session),
            kind: SessionKind::Login,
            expires_at: after(clock.now(), SESSION_SECONDS),
            address: peer.ip().to_string(),
        }
    }

    fn digest(&self) -> Digest {
        self.token.digest()
    }

    /// Returns the session as the model keeps it, without the token.
    pub(super) fn session(&self) -> NewSession {
        NewSession {
            token: self.digest(),
            kind: self.kind.clone(),
            expires_at: self.expires_at,
            address: self.address.clone(),
        }
    }

    fn issued(self, user: UserName) -> IssuedSession {
        let id = SessionId::of(&self.digest());
        IssuedSession { user, id, token: self.token, expires_at: self.expires_at }
    }

    /// Opens the session of a user who has just proved an identity.
    pub(super) async fn open(
        self,
        submission: &Submission,
        command: IdentityCommand,
    ) -> Result<IssuedSession, Refusal> {
        // The API has proved the user; the entry in the audit log names the user and the new session.
        let origin = Origin { session: Some(SessionId::of(&self.digest())), address: self.address.clone() };
        let sender = Sender { caller: Caller::Worker, origin: Some(origin), scope: None };
        let input = Input::Identity(command);
        let (answered, _) = submission.commands.submit_one(QueueKey::Controller, sender, input, 0).await?;
        match answered.output {
            Output::Session(user) => Ok(self.issued(user)),
            Output::Answer(_) | Output::Runner(_) | Output::Done => Err(denied()),
        }
    }
}
