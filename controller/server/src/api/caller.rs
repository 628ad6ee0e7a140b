//! The identity of callers: the token of a session, the certificate of an agent over TLS, and on the controller's socket
//! the header of a user. In one process with its clients the controller believes what requests say.

use std::net::IpAddr;

use axum::extract::FromRequestParts;
use http::{Uri, header, request::Parts};
use periapt_host_api::{
    AgentName, Digest, ErrorCode, ModelUuid, Refusal, RequestId, Timestamp, UserName, agent,
    command::Caller,
    excerpt,
    token::Token,
    user::{FIRST_USER, SessionId, TokenScope},
};
use periapt_model::{
    ModelState, Origin, Right, Root, Subject, active_user, authenticate, entity::SessionKind, is_allowed,
    scope_admits,
};
use periapt_transport::AgentCertificate;

use crate::{
    api::{
        connection::{ConnectionIdentity, Peer},
        failure::Failure,
    },
    writer::Sender,
};

/// The identified caller of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestCaller {
    /// The caller.
    pub(crate) caller: Caller,
    /// The session that proves a user; none for an agent, and for a user of the controller's own host.
    pub(crate) session: Option<RequestSession>,
    /// The address that the request came from; none in a test without connections.
    pub(crate) address: Option<IpAddr>,
    /// The id of a user's request, by which it is known when it is sent again.
    pub(crate) request: Option<RequestId>,
}

/// The session or API token of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestSession {
    /// The digest of the token.
    pub(crate) token: Digest,
    /// The bounds of an API token; none for the session of a person.
    pub(crate) scope: Option<TokenScope>,
}

impl RequestCaller {
    /// Returns the caller as the sender of a command, for the audit log.
    pub(crate) fn sender(&self) -> Sender {
        let session = self.session.as_ref().map(|session| SessionId::of(&session.token));
        let origin = match self.caller {
            Caller::User(_) => Some(Origin { session, address: self.address() }),
            Caller::Agent(_) | Caller::Runner { .. } | Caller::Worker => None,
        };
        Sender { caller: self.caller.clone(), origin, scope: self.scope().cloned() }
    }

    /// Returns the address as the audit log names it.
    fn address(&self) -> String {
        self.address.map_or_else(|| "local".to_owned(), |address| address.to_string())
    }

    /// Returns the caller as one of a model's runners: the agent's keeper speaks for its runner.
    pub(crate) fn runner(&self, agent: &AgentName, model: ModelUuid) -> Result<Caller, Refusal> {
        self.agent(agent)?;
        Ok(Caller::Runner { agent: agent.clone(), model })
    }

    /// Returns the caller as an agent. Refuses every caller but that agent.
    pub(crate) fn agent(&self, agent: &AgentName) -> Result<&Caller, Refusal> {
        match &self.caller {
            Caller::Agent(caller) if caller == agent => Ok(&self.caller),
            _ => Err(denied()),
        }
    }

    /// Returns the name of the user. Refuses agents.
    pub(crate) fn user(&self) -> Result<&UserName, Refusal> {
        match &self.caller {
            Caller::User(user) => Ok(user),
            Caller::Agent(_) | Caller::Runner { .. } | Caller::Worker => Err(denied()),
        }
    }

    /// Returns true if the caller has a right, and its token's scope admits it.
    pub(crate) fn may(&self, root: &Root, right: Right, subject: Subject<'_>) -> bool {
        let model = match subject {
            Subject::Model(state) | Subject::Offer(state, _) | Subject::Runner(_, state) => {
                Some(&state.model().uuid)
            }
            Subject::Controller | Subject::User(_) | Subject::Agent(_) => None,
        };
        self.admits(right, model) && is_allowed(root, &self.caller, right, subject)
    }

    /// Returns true if the caller may see a model.
    pub(crate) fn sees(&self, root: &Root, state: &ModelState) -> bool {
        self.may(root, Right::ReadModel, Subject::Model(state))
    }

    /// Refuses a caller without a right to a subject that it may see.
    pub(crate) fn require(&self, root: &Root, right: Right, subject: Subject<'_>) -> Result<(), Refusal> {
        if self.may(root, right, subject) { Ok(()) } else { Err(denied()) }
    }

    /// Returns true if the scope of the caller's token admits a right.
    pub(crate) fn admits(&self, right: Right, model: Option<&ModelUuid>) -> bool {
        self.scope().is_none_or(|scope| scope_admits(scope, right, model))
    }

    /// Returns the bounds of the caller's API token, if the caller has one.
    pub(crate) fn scope(&self) -> Option<&TokenScope> {
        self.session.as_ref().and_then(|session| session.scope.as_ref())
    }
}

/// Returns the refusal of a caller without the permission.
pub(crate) fn denied() -> Refusal {
    Refusal::permission_denied("permission denied")
}

/// Returns the refusal of a caller who proves no valid identity. It does not tell why: a token that is unknown, has
/// ended or was revoked, and a user who is disabled or removed, are all the same.
pub(crate) fn not_logged_in() -> Refusal {
    Refusal::new(ErrorCode::NotLoggedIn, "not logged in, or the session has ended")
}

/// Takes the caller that the admission identified.
impl<S: Sync> FromRequestParts<S> for RequestCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts.extensions.get().cloned().ok_or_else(|| Failure(not_logged_in()))
    }
}

/// Identifies the caller of a request: by its token, or else by its headers on a connection that is
/// believed.
///
/// # Errors
/// The request proves no valid identity.
pub(crate) fn identify(parts: &Parts, root: &Root, now: Timestamp) -> Result<RequestCaller, Refusal> {
    refuse_browsers(parts)?;
    let request = text(parts, agent::header::REQUEST_ID)?.map(request_id).transpose()?;
    let peer = parts.extensions.get::<Peer>();
    let address = peer.map(Peer::ip);
    if let Some(header) = parts.headers.get(header::AUTHORIZATION) {
        let text = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        let token: Option<Token> = text.and_then(|text| text.trim().parse().ok());
        let (user, session) =
            token.and_then(|token| authenticate(root, &token.digest(), now)).ok_or_else(not_logged_in)?;
        let scope = match &session.kind {
            SessionKind::Login => None,
            SessionKind::Api { scope, .. } => Some(scope.clone()),
        };
        let session = Some(RequestSession { token: session.token, scope });
        return Ok(RequestCaller { caller: Caller::User(user.name.clone()), session, address, request });
    }
    let peer = peer.ok_or_else(not_logged_in)?;
    let caller = match &peer.identity {
        ConnectionIdentity::InProcess if !peer.address.is_some_and(|peer| peer.ip().is_loopback()) => {
            return Err(not_logged_in());
        }
        ConnectionIdentity::InProcess | ConnectionIdentity::Socket => named(parts, &peer.identity)?,
        ConnectionIdentity::Tls(Some(agent)) if is_enrolled(root, agent, now) => {
            Caller::Agent(agent.agent.clone())
        }
        ConnectionIdentity::Controller(certificate) if now < certificate.until => Caller::Worker,
        ConnectionIdentity::Tls(_) | ConnectionIdentity::Controller(_) => return Err(not_logged_in()),
    };
    match &caller {
        Caller::User(_) if active_user(root, &caller).is_none() => Err(not_logged_in()),
        Caller::User(_) => Ok(RequestCaller { caller, session: None, address, request }),
        // Calls of agents have answers of their own when they are sent again.
        _ => Ok(RequestCaller { caller, session: None, address, request: None }),
    }
}

fn request_id(text: &str) -> Result<RequestId, Refusal> {
    let name = agent::header::REQUEST_ID;
    text.parse().map_err(|_| {
        let told = excerpt::shortened(text);
        Refusal::bad_request(format!("header {name} must be a UUID, such as `uuidgen` prints, not {told:?}"))
    })
}

/// Returns the text of a header, if the request has it.
fn text<'a>(parts: &'a Parts, name: &str) -> Result<Option<&'a str>, Refusal> {
    match parts.headers.get(name).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(Refusal::bad_request(format!("header {name} is not text"))),
    }
}

/// Returns true if the controller knows the agent of a certificate by the certificate's key, and the certificate has not
/// expired.
fn is_enrolled(root: &Root, certificate: &AgentCertificate, now: Timestamp) -> bool {
    let key = root.enrolment(&certificate.agent).and_then(|enrolment| enrolment.key);
    key == Some(certificate.key) && now < certificate.until
}

/// Returns the caller that the headers of a request name, on the controller's socket or in one process.
fn named(parts: &Parts, connection: &ConnectionIdentity) -> Result<Caller, Refusal> {
    let wrong = |error: periapt_host_api::NameError| Refusal::bad_request(error.to_string());
    if *connection == ConnectionIdentity::InProcess && parts.headers.contains_key(agent::header::CONTROLLER) {
        return Ok(Caller::Worker);
    }
    match (text(parts, agent::header::AGENT)?, text(parts, agent::header::USER)?) {
        (Some(_), None) if *connection == ConnectionIdentity::Socket => {
            Err(Refusal::permission_denied("an agent identifies itself by its certificate, not by its name"))
        }
        (Some(agent), None) => Ok(Caller::Agent(AgentName::new(agent).map_err(wrong)?)),
        (None, user) => Ok(Caller::User(UserName::new(user.unwrap_or(FIRST_USER)).map_err(wrong)?)),
        (Some(_), Some(_)) => Err(Refusal::bad_request("a caller is an agent or a user, not both")),
    }
}

/// Refuses requests of web pages, which must not reach a controller that believes its caller. Browsers send the
/// page's origin, and the host name that they looked up (which a site can point at this machine). Over TLS the
/// certificate proves that the controller has that name.
fn refuse_browsers(parts: &Parts) -> Result<(), Refusal> {
    if parts.headers.contains_key(header::ORIGIN) {
        return Err(Refusal::permission_denied("requests from web pages are refused"));
    }
    let peer = parts.extensions.get::<Peer>();
    if peer.is_some_and(|peer| {
        matches!(peer.identity, ConnectionIdentity::Tls(_) | ConnectionIdentity::Controller(_))
    }) {
        return Ok(());
    }
    let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Uri>().ok());
    match parts.uri.host().or_else(|| named.as_ref().and_then(Uri::host)) {
        Some(host) if !is_local(host) => {
            Err(Refusal::permission_denied(format!("this controller is not called {host}; use its address")))
        }
        _ => Ok(()),
    }
}

fn is_local(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use http::Request;
    use periapt_host_api::{Revision, token::TokenKind};
    use periapt_model::{Environment, Input, WorkerCommand, evaluate};

    use super::*;

    /// Returns the state of a controller after its first start.
    fn root() -> Root {
        let env = Environment { now: Timestamp::UNIX_EPOCH, lease_now_ms: 0, seed: [1; 16] };
        let input = Input::Worker(WorkerCommand::Initialize { name: "home".to_owned() });
        let (changes, _) = evaluate(&Root::default(), &Caller::Worker, &input, &env).unwrap();
        Root::default().apply(&changes, Revision(1))
    }

    fn identified(address: &str, headers: &[(&str, &str)]) -> Result<Caller, String> {
        identified_as(Peer::new(Some(address.parse().unwrap()), ConnectionIdentity::InProcess), headers)
    }

    fn identified_as(peer: Peer, headers: &[(&str, &str)]) -> Result<Caller, String> {
        let mut request = Request::builder().uri("/v1/controller");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(peer);
        let identified = identify(&parts, &root(), Timestamp::UNIX_EPOCH);
        identified.map(|who| who.caller).map_err(|refusal| refusal.message)
    }

    #[test]
    fn callers_in_this_process_and_on_the_socket_are_believed() {
        let admin = Caller::User(UserName::new("admin").unwrap());
        let one = Caller::Agent(AgentName::new("one").unwrap());
        assert_eq!(identified("127.0.0.1:5", &[]), Ok(admin.clone()));
        assert_eq!(identified("[::1]:5", &[("host", "[::1]:80")]), Ok(admin));
        assert_eq!(identified("127.0.0.1:5", &[("periapt-agent", "one"), ("host", "localhost:9")]), Ok(one));
        assert!(identified("127.0.0.1:5", &[("periapt-agent", "one"), ("periapt-user", "bob")]).is_err());
        assert!(identified("127.0.0.1:5", &[("periapt-user", "b o b")]).is_err());
        assert!(identified("127.0.0.1:5", &[("periapt-user", "bob")]).is_err(), "there is no such user");
        let socket = Peer::new(None, ConnectionIdentity::Socket);
        assert_eq!(
            identified_as(socket, &[("host", "localhost")]),
            Ok(Caller::User(UserName::new("admin").unwrap()))
        );
    }

    #[test]
    fn strangers_and_web_pages_are_not() {
        assert!(identified("192.0.2.7:5", &[]).unwrap_err().contains("not logged in"));
        let stranger = Peer::new(Some("127.0.0.1:5".parse().unwrap()), ConnectionIdentity::Tls(None));
        let refused = identified_as(stranger, &[("periapt-user", "admin")]);
        assert!(refused.unwrap_err().contains("not logged in"));
        assert!(identified("127.0.0.1:5", &[("origin", "https://evil.example")]).is_err());
        assert!(identified("127.0.0.1:5", &[("host", "evil.example:80")]).is_err());
    }

    #[test]
    fn a_wrong_token_is_refused_even_on_this_machine() {
        let unknown = Token::new(TokenKind::Session, [3; 32]).reveal();
        for header in ["", "Bearer ", "Bearer pt_s_x", "Basic YTpi", &format!("Bearer {unknown}")] {
            let refused = identified("127.0.0.1:5", &[("authorization", header)]).unwrap_err();
            assert_eq!(refused, not_logged_in().message, "{header}");
        }
    }

    #[test]
    fn an_agent_speaks_for_itself_and_its_runners_alone() {
        let (one, two) = (AgentName::new("one").unwrap(), AgentName::new("two").unwrap());
        let model = ModelUuid(uuid::Uuid::nil());
        let who =
            RequestCaller { caller: Caller::Agent(one.clone()), session: None, address: None, request: None };
        assert_eq!(who.runner(&one, model), Ok(Caller::Runner { agent: one.clone(), model }));
        assert!(who.runner(&two, model).is_err());
        assert!(who.user().is_err());
        let admin = Caller::User(UserName::new("admin").unwrap());
        assert!(
            RequestCaller { caller: admin, session: None, address: None, request: None }.agent(&one).is_err()
        );
    }
}
