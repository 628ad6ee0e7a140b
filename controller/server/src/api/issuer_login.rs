//! The routes by which external users log in at the controller's issuer.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::{FromRef, State},
};
use http::HeaderMap;
use periapt_host_api::{
    Refusal,
    token::TokenKind,
    user::{AwaitLogin, BegunLogin, ExternalIdentity, LoginResult},
};
use periapt_model::{IdentityCommand, IssuerLogin, user_at_issuer};
use serde::Deserialize;

use crate::{
    api::{
        body,
        connection::Peer,
        failure::HandlerResult,
        sessions::{PreparedSession, unproved},
    },
    clock::Clock,
    login::Logins,
    network::Network,
    oidc::IssuerLogins,
    refusals::Refusals,
    state::{ControllerState, Streams, Submission},
};

/// The body of a request without content: an object. Web pages cannot send JSON without permission.
#[derive(Deserialize)]
pub(crate) struct Empty {}

/// Begins a login at the issuer.
pub(crate) async fn begin(
    State(issuer): State<IssuerLogins>,
    State(logins): State<Logins>,
    peer: Peer,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<BegunLogin>> {
    let Empty {} = body::small_value(&headers, content).await?;
    let token = logins.token(TokenKind::DeviceLogin);
    Ok(Json(issuer.begin(Network::of(peer.ip()), token).await?))
}

/// The parts that the end of a login needs.
#[derive(Clone)]
pub(crate) struct LoginEnd {
    issuer: IssuerLogins,
    streams: Streams,
    submission: Submission,
    logins: Logins,
    refusals: Refusals,
    clock: Arc<dyn Clock>,
}

impl FromRef<ControllerState> for LoginEnd {
    fn from_ref(state: &ControllerState) -> Self {
        Self {
            issuer: state.issuer_logins.clone(),
            streams: state.streams.clone(),
            submission: state.submission.clone(),
            logins: state.logins.clone(),
            refusals: state.refusals.clone(),
            clock: Arc::clone(&state.clock),
        }
    }
}

/// Waits for the approval of a login, and opens a session.
pub(crate) async fn result(
    State(end): State<LoginEnd>,
    peer: Peer,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<LoginResult>> {
    let AwaitLogin { token } = body::small_value(&headers, content).await?;
    let failed = |subject: String, refusal: Refusal| {
        end.refusals.note(unproved(&peer, "log-in", subject, refusal.code), end.clock.now());
        refusal
    };
    let waited = tokio::select! {
        waited = end.issuer.result(&token) => waited,
        () = end.streams.stop.cancelled() => Ok(None),
    };
    let login = waited.map_err(|refusal| failed("at the issuer".to_owned(), refusal))?;
    let Some(login) = login else { return Ok(Json(LoginResult::Pending)) };
    // A refused account is counted, and has no entry of its own in the audit log.
    user_at_issuer(&end.submission.durable.current().root, &login)
        .map_err(|refusal| failed(account(&login), refusal))?;
    let prepared = PreparedSession::new(&end.logins, &*end.clock, &peer);
    let command = IdentityCommand::LogInAtIssuer { login, session: prepared.session() };
    Ok(Json(LoginResult::LoggedIn(prepared.open(&end.submission, command).await?)))
}

/// Returns the account of a login, as the audit log names it.
fn account(login: &IssuerLogin) -> String {
    let IssuerLogin { user, identity: ExternalIdentity { issuer, subject }, .. } = login;
    format!("user {user}, account {subject} of {issuer}")
}
