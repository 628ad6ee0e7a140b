//! The identity of callers. On loopback the headers are trusted; TLS certificates and users' tokens will be read
//! here, too.

use std::net::{IpAddr, SocketAddr};

use axum::extract::FromRequestParts;
use http::{Uri, header, request::Parts};
use periapt_host_api::{AgentName, ModelUuid, Refusal, UserName, agent, command::Caller};

use crate::api::failure::Failure;

/// The remote address of a connection, which is added to each of its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// The caller that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestCaller(pub(crate) Caller);

impl RequestCaller {
    /// Returns the caller as one of a model's runners: the agent's keeper speaks for its runner.
    pub(crate) fn runner(&self, agent: &AgentName, model: ModelUuid) -> Result<Caller, Refusal> {
        self.agent(agent)?;
        Ok(Caller::Runner { agent: agent.clone(), model })
    }

    /// Returns the caller as an agent. Refuses every caller but that agent.
    pub(crate) fn agent(&self, agent: &AgentName) -> Result<&Caller, Refusal> {
        match &self.0 {
            Caller::Agent(caller) if caller == agent => Ok(&self.0),
            _ => Err(denied()),
        }
    }

    /// Returns the caller as a user, who may read models.
    pub(crate) fn user(&self) -> Result<&Caller, Refusal> {
        match &self.0 {
            Caller::User(_) => Ok(&self.0),
            _ => Err(denied()),
        }
    }
}

fn denied() -> Refusal {
    Refusal::permission_denied("permission denied")
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts.extensions.get().copied().ok_or_else(|| Failure(denied()))
    }
}

impl<S: Sync> FromRequestParts<S> for RequestCaller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        identify(parts).map(Self).map_err(Failure)
    }
}

fn identify(parts: &Parts) -> Result<Caller, Refusal> {
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0.ip());
    if !peer.is_some_and(|ip| ip.is_loopback()) {
        return Err(Refusal::permission_denied("callers from other machines cannot be identified yet"));
    }
    refuse_browsers(parts)?;
    let text = |name: &str| match parts.headers.get(name).map(|value| value.to_str()) {
        None => Ok(None),
        Some(Ok(text)) => Ok(Some(text)),
        Some(Err(_)) => Err(Refusal::bad_request(format!("header {name} is no text"))),
    };
    let wrong = |error: periapt_host_api::NameError| Refusal::bad_request(error.to_string());
    match (text(agent::header::AGENT)?, text(agent::header::USER)?) {
        (Some(agent), None) => Ok(Caller::Agent(AgentName::new(agent).map_err(wrong)?)),
        (None, Some(user)) => Ok(Caller::User(UserName::new(user).map_err(wrong)?)),
        (None, None) => Ok(Caller::User(UserName::new("admin").map_err(wrong)?)),
        (Some(_), Some(_)) => Err(Refusal::bad_request("a caller is an agent or a user, not both")),
    }
}

/// Refuses requests of web pages, which must not reach a controller that trusts its whole machine. Browsers send the
/// page's origin, and the host name that they looked up (which a site can point at this machine).
fn refuse_browsers(parts: &Parts) -> Result<(), Refusal> {
    if parts.headers.contains_key(header::ORIGIN) {
        return Err(Refusal::permission_denied("requests of web pages are not answered"));
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

    use super::*;

    fn identified(peer: &str, headers: &[(&str, &str)]) -> Result<Caller, String> {
        let mut request = Request::builder().uri("/v1/controller");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(Peer(peer.parse().unwrap()));
        identify(&parts).map_err(|refusal| refusal.message)
    }

    #[test]
    fn callers_on_this_machine_are_believed() {
        let admin = Caller::User(UserName::new("admin").unwrap());
        let one = Caller::Agent(AgentName::new("one").unwrap());
        assert_eq!(identified("127.0.0.1:5", &[]), Ok(admin.clone()));
        assert_eq!(identified("[::1]:5", &[("host", "[::1]:80")]), Ok(admin));
        assert_eq!(identified("127.0.0.1:5", &[("periapt-agent", "one"), ("host", "localhost:9")]), Ok(one));
        assert!(identified("127.0.0.1:5", &[("periapt-agent", "one"), ("periapt-user", "bob")]).is_err());
        assert!(identified("127.0.0.1:5", &[("periapt-user", "b o b")]).is_err());
    }

    #[test]
    fn strangers_and_web_pages_are_not() {
        assert!(identified("192.0.2.7:5", &[]).unwrap_err().contains("other machines"));
        assert!(identified("127.0.0.1:5", &[("origin", "https://evil.example")]).is_err());
        assert!(identified("127.0.0.1:5", &[("host", "evil.example:80")]).is_err());
    }

    #[test]
    fn an_agent_speaks_for_itself_and_its_runners_alone() {
        let (one, two) = (AgentName::new("one").unwrap(), AgentName::new("two").unwrap());
        let model = ModelUuid(uuid::Uuid::nil());
        let who = RequestCaller(Caller::Agent(one.clone()));
        assert_eq!(who.runner(&one, model), Ok(Caller::Runner { agent: one.clone(), model }));
        assert!(who.runner(&two, model).is_err());
        assert!(who.user().is_err());
        assert!(RequestCaller(Caller::User(UserName::new("admin").unwrap())).agent(&one).is_err());
    }
}
