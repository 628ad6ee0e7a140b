//! The options of a client.

use std::time::Duration;

use periapt_host_api::{AgentName, UserName, token::Token, trace::TraceContext};
use periapt_transport::{ClientCertificate, Trust};

/// The options of a [`Client`](crate::Client).
#[derive(Debug, Clone)]
pub struct Options {
    /// The controller's URL: `https://HOST:PORT`, or `unix:///PATH` on its own host.
    pub url: String,
    /// The authority that has issued the controller's certificate. A URL `https://` needs one.
    pub trust: Option<Trust>,
    /// The certificate that the client shows; by default none.
    pub certificate: ClientCertificate,
    /// The caller.
    pub identity: Identity,
    /// The time for which a call retries to connect, with growing pauses; zero means one attempt.
    pub retry_timeout: Duration,
    /// The time for which a call retries after a busy controller's refusal, with growing pauses; zero means one
    /// attempt. A request that is refused so has no effect.
    pub busy_retry_timeout: Duration,
    /// The longest time to wait for an answer. It does not limit streams that are open.
    pub answer_within: Duration,
    /// The span that each request comes from, sent as the header `traceparent`; none: requests are not traced.
    pub trace: Option<TraceContext>,
}

impl Options {
    /// Creates options with a single attempt to connect and 30 seconds for an answer.
    pub fn new(url: impl Into<String>, identity: Identity) -> Self {
        Self {
            url: url.into(),
            trust: None,
            certificate: ClientCertificate::default(),
            identity,
            retry_timeout: Duration::ZERO,
            busy_retry_timeout: Duration::ZERO,
            answer_within: Duration::from_secs(30),
            trace: None,
        }
    }

    /// Trusts an authority.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Shows a certificate.
    pub fn with_certificate(mut self, certificate: ClientCertificate) -> Self {
        self.certificate = certificate;
        self
    }

    /// Sets the time for which a call retries to connect.
    pub fn with_retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.retry_timeout = retry_timeout;
        self
    }

    /// Sends each request as part of a trace.
    pub fn with_trace(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace;
        self
    }

    /// Sets the time for which a call retries after a busy controller's refusal.
    pub fn with_busy_retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.busy_retry_timeout = retry_timeout;
        self
    }
}

/// The identity that the caller names. A controller believes it where it knows its caller: on its socket, and in one
/// process with its tests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Identity {
    /// Any caller that reaches the controller's address.
    #[default]
    Local,
    /// A user whom the controller believes by name.
    User(UserName),
    /// A user who proves a session or an API token.
    Token(Token),
    /// The keeper of an agent, for itself and for its runners.
    Agent(AgentName),
}
