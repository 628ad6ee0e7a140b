//! The admission of requests: each route names a right (`docs/access.md`), which the caller must have before the
//! route's handler runs.

use std::{collections::HashMap, fmt, sync::Arc, task::Poll};

use axum::{
    body::Body,
    extract::{MatchedPath, RawPathParams, Request, State},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{Method, StatusCode, header};
use periapt_host_api::{
    AgentName, ErrorCode, ModelUuid, Refusal, UserName, api::ModelSelector, command::Caller, user::SessionId,
};
use periapt_model::{Holder, Right, Root, Subject, SubjectKind};

use crate::{
    api::{
        caller::{RequestCaller, denied, identify},
        connection::Peer,
        failure::Failure,
        find::{find_model, parsed, unknown_user},
        guard::Guards,
        seen::{self, Strangers},
        serve::KnownCaller,
        streams::is_stream,
    },
    clock::Clock,
    network::Network,
    refusals::{Refusals, RefusedRequest},
    replication::Freshness,
    state::Durable,
};

/// The rights of all routes, and the state to check them.
pub(crate) struct Admission {
    /// By path, with the method.
    pub(crate) rights: HashMap<&'static str, Vec<(Method, Right)>>,
    pub(crate) durable: Durable,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) guards: Guards,
    pub(crate) refusals: Refusals,
    pub(crate) freshness: Freshness,
    pub(crate) strangers: Strangers,
}

/// Identifies the caller of a request, and refuses one without the route's right.
pub(crate) async fn admit(
    State(admission): State<Arc<Admission>>,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    if !admission.shows_state(&request) {
        return admitted_or_refused(admission, params, request, next).await;
    }
    if let Err(refusal) = admission.freshness.check() {
        return Failure(refusal).into_response();
    }
    if let Err(refusal) = admission.has_what_was_seen(&mut request).await {
        return Failure(refusal).into_response();
    }
    let (durable, freshness) = (admission.durable.clone(), admission.freshness.clone());
    let mut response = admitted_or_refused(admission, params, request, next).await;
    seen::tell(&durable, &mut response);
    ended_by(response, freshness)
}

async fn admitted_or_refused(
    admission: Arc<Admission>,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let admitted = match admission.check_strangers_twice(&params, &mut request).await {
        Ok(admitted) => admitted,
        Err(refusal) => {
            admission.note_refused(request, refusal.code);
            return Failure(refusal).into_response();
        }
    };
    if let (Some((who, ..)), Some(known)) = (&admitted, request.extensions().get::<KnownCaller>()) {
        known.note(&who.caller);
    }
    let route = Route::of(&request);
    let response = next.run(request).await;
    match admitted {
        Some((who, ..)) if response.status() == StatusCode::FORBIDDEN => {
            admission.note(&who, &route, ErrorCode::PermissionDenied);
            response
        }
        Some(admitted) => admission.guards.guard(response, admitted, |holds| {
            holds(&admission.durable.current().root, admission.clock.now())
        }),
        None => response,
    }
}

/// An admitted caller, the route's right, and the model that the path names.
type Admitted = (RequestCaller, Right, Option<ModelUuid>);

impl Admission {
    /// Returns the caller, the right and the model that the path names; nothing if the route asks for no caller.
    fn check(&self, params: &RawPathParams, request: &mut Request) -> Result<Option<Admitted>, Refusal> {
        let Some(right) = self.right_of(request)? else { return Ok(None) };
        let root = &self.durable.current().root;
        let who = match self.identified(root, request) {
            // A caller of such a route need not be known.
            Err(refusal) if refusal.code == ErrorCode::NotLoggedIn && is_for_anyone(right) => {
                return Ok(None);
            }
            identified => identified?,
        };
        let model = admitted(root, &who, right, params)?;
        request.extensions_mut().insert(who.clone());
        Ok(Some((who, right, model)))
    }

    fn identified(&self, root: &Root, request: &mut Request) -> Result<RequestCaller, Refusal> {
        let (parts, body) = std::mem::take(request).into_parts();
        let identified = identify(&parts, root, self.clock.now());
        *request = Request::from_parts(parts, body);
        identified
    }

    /// Waits until this controller has applied what a known caller saw at another one.
    async fn has_what_was_seen(&self, request: &mut Request) -> Result<(), Refusal> {
        let Some(seen) = seen::ahead(&self.durable, request.headers())? else { return Ok(()) };
        match self.identified(&self.durable.current().root, request) {
            Ok(_) => seen::reached(self.durable.state.clone(), seen).await,
            // What follows asks the log before it refuses the caller.
            Err(_) => Ok(()),
        }
    }

    /// Checks a request as [`check`](Self::check) does, with what another controller may have given out a moment ago: a
    /// session, a certificate, or what a request for anyone has in its body.
    async fn check_strangers_twice(
        &self,
        params: &RawPathParams,
        request: &mut Request,
    ) -> Result<Option<Admitted>, Refusal> {
        let checked = self.check(params, request);
        let is_strange = match &checked {
            Ok(Some(_)) => false,
            Ok(None) => self.right_of(request)?.is_some(),
            Err(refusal) => refusal.code == ErrorCode::NotLoggedIn && has_credentials(request),
        };
        if !is_strange || self.freshness.is_stale() {
            return checked;
        }
        let network = request.extensions().get::<Peer>().map(|peer| Network::of(peer.ip()));
        self.strangers.wait_for_log(network, &self.freshness).await?;
        self.check(params, request)
    }

    /// Returns true if the answer to a request depends on the state. The routes by which controllers reach each other, and
    /// those that tell how this one is, are served whatever the state's age.
    fn shows_state(&self, request: &Request) -> bool {
        let right = self.right_of(request).ok().flatten();
        right.is_some_and(|right| !matches!(right, Right::Work | Right::ReadController | Right::ReadMetrics))
    }

    /// Counts a request that was not admitted for the audit log: without the right, or with an invalid token. A request
    /// without any token is no attempt at anything.
    fn note_refused(&self, request: Request, code: ErrorCode) {
        let route = Route::of(&request);
        let (parts, _) = request.into_parts();
        let address = parts.extensions.get::<Peer>().map(Peer::ip);
        match identify(&parts, &self.durable.current().root, self.clock.now()) {
            Ok(who) if code == ErrorCode::PermissionDenied => self.note(&who, &route, code),
            Err(_) if parts.headers.contains_key(header::AUTHORIZATION) => {
                let (network, act, subject) = (address.map(Network::of), route.to_string(), String::new());
                let request = RefusedRequest { user: None, session: None, network, act, subject, code };
                self.refusals.note(request, self.clock.now());
            }
            _ => {}
        }
    }

    /// Counts a refused request of a user for the audit log.
    fn note(&self, who: &RequestCaller, route: &Route, code: ErrorCode) {
        let Caller::User(user) = &who.caller else { return };
        let session = who.session.as_ref().map(|session| SessionId::of(&session.token));
        let network = who.address.map(Network::of);
        let (user, act, subject) = (Some(user.clone()), route.to_string(), String::new());
        self.refusals.note(RefusedRequest { user, session, network, act, subject, code }, self.clock.now());
    }

    /// Returns the right of the route; none for a method that it does not offer, which has no handler. HEAD is answered
    /// as GET, unless it has a route of its own.
    fn right_of(&self, request: &Request) -> Result<Option<Right>, Refusal> {
        let none = || Refusal::new(ErrorCode::Internal, "the route has no right");
        let path = request.extensions().get::<MatchedPath>().ok_or_else(none)?.as_str();
        let offered = self.rights.get(path).ok_or_else(none)?;
        let of = |method: &Method| offered.iter().find(|(on, _)| on == method).map(|(_, right)| *right);
        let other = || (request.method() == Method::HEAD).then(|| of(&Method::GET)).flatten();
        Ok(of(request.method()).or_else(other))
    }
}

/// The method and the route of a request, as the audit log names it. The path's parts stay out: an entry is for all
/// requests to a route. Cheap to make, as each request has one and few are refused.
struct Route {
    method: Method,
    path: Option<MatchedPath>,
}

impl Route {
    fn of(request: &Request) -> Self {
        Self { method: request.method().clone(), path: request.extensions().get().cloned() }
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.as_ref().map_or("", MatchedPath::as_str);
        write!(f, "{} {path}", self.method)
    }
}

/// Returns true if a request shows a token, or its connection a certificate.
fn has_credentials(request: &Request) -> bool {
    let peer = request.extensions().get::<Peer>();
    request.headers().contains_key(header::AUTHORIZATION) || peer.is_some_and(Peer::has_certificate)
}

fn is_for_anyone(right: Right) -> bool {
    right.row().holders.contains(&Holder::Anyone)
}

/// Checks a right to the subject that the path names. Returns the model, if it is one.
fn admitted(
    root: &Root,
    who: &RequestCaller,
    right: Right,
    params: &RawPathParams,
) -> Result<Option<ModelUuid>, Refusal> {
    let param = |name: &str| {
        let found = params.iter().find(|(key, _)| *key == name).map(|(_, value)| value);
        found.ok_or_else(|| Refusal::new(ErrorCode::Internal, format!("the path has no {name}")))
    };
    match right.row().subject {
        SubjectKind::Controller | SubjectKind::Offer => {
            who.require(root, right, Subject::Controller).map(|()| None)
        }
        SubjectKind::User => {
            let user: UserName = parsed(param("user")?)?;
            who.user()?;
            match who.may(root, right, Subject::User(&user)) {
                true => Ok(None),
                false => Err(unknown_user(&user)),
            }
        }
        SubjectKind::Model => {
            // An agent gets the same answer for every model.
            who.user()?;
            let selector: ModelSelector = parsed(param("model")?)?;
            let state = find_model(root, who, &selector)?;
            who.require(root, right, Subject::Model(&state))?;
            Ok(Some(state.model().uuid))
        }
        SubjectKind::Agent => {
            let agent: AgentName = parsed(param("agent")?)?;
            who.require(root, right, Subject::Agent(&agent)).map(|()| None)
        }
        SubjectKind::Runner => {
            let (agent, model): (AgentName, ModelUuid) = (parsed(param("agent")?)?, parsed(param("uuid")?)?);
            match (&who.caller, root.model_or_remains(&model)) {
                (Caller::Agent(_), Some(state)) => {
                    who.require(root, right, Subject::Runner(&agent, state)).map(|()| Some(model))
                }
                _ => Err(denied()),
            }
        }
    }
}

/// A stream that a controller breaks off, so that its reader does not take the lines before for all of them.
#[derive(Debug, thiserror::Error)]
#[error("the controller is not up to date with its log")]
struct BrokenOff;

/// Returns a response whose stream breaks off when this controller does not keep up with its log.
fn ended_by(response: Response, freshness: Freshness) -> Response {
    if !is_stream(&response) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let (mut lines, mut lost) = (body.into_data_stream(), Box::pin(freshness.clone().lost().fuse()));
    let lines = stream::poll_fn(move |context| {
        // By the clock, too: after a machine was suspended, a line may be there before the log is asked.
        if lost.poll_unpin(context).is_ready() || freshness.is_stale() {
            return Poll::Ready(Some(Err(axum::Error::new(BrokenOff))));
        }
        lines.poll_next_unpin(context)
    });
    Response::from_parts(parts, Body::from_stream(lines))
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use super::*;
    use crate::api::streams::NDJSON;

    #[tokio::test(start_paused = true)]
    async fn a_stream_breaks_off_before_a_line_that_an_old_state_shows() {
        let lines = stream::iter(["1\n", "2\n"].map(Ok::<_, Infallible>));
        let response = Response::builder().header(header::CONTENT_TYPE, NDJSON);
        let response = response.body(Body::from_stream(lines)).unwrap();
        let shown = ended_by(response, Freshness::of_several());
        let mut lines = shown.into_body().into_data_stream();
        assert_eq!(lines.next().await.unwrap().unwrap(), "1\n");
        // The controller stands still meanwhile, so none of its parts has noticed.
        tokio::time::advance(Duration::from_secs(6)).await;
        let broken = lines.next().await.unwrap().unwrap_err();
        assert!(broken.to_string().contains("not up to date with its log"), "{broken}");
    }
}
