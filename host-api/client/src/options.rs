//! The options of a client.

use std::{net::SocketAddr, time::Duration};

use periapt_host_api::{AgentName, UserName, token::Token, trace::TraceContext};
use periapt_transport::{ClientCertificate, MemoryCaller, Trust};

use crate::{Addresses, AddressesError, Seen};

/// The options of a [`Client`](crate::Client).
#[derive(Debug, Clone)]
pub struct Options {
    /// The controllers' URLs: `https://HOST:PORT`, several of them, or `unix:///PATH` on a controller's own host.
    /// [`Client::new`](crate::Client::new) returns the error of a text that is no list of URLs.
    pub(crate) addresses: Result<Addresses, AddressesError>,
    /// The address at which the client begins.
    pub start_at: StartAt,
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
    /// The time for which a user's request is sent again that was sent and not answered, with growing pauses and over new
    /// connections; zero means that its outcome is told as unknown. The controller carries it out once.
    pub unanswered_retry_timeout: Duration,
    /// The longest time to wait for an answer. It does not limit streams that are open.
    pub answer_within: Duration,
    /// The span that each request comes from, sent as the header `traceparent`; none: requests are not traced.
    pub trace: Option<TraceContext>,
    /// The newest state that the client has seen. No controller shows it an older one.
    pub(crate) seen: Seen,
    /// The network in memory in which the addresses are; none: they are on this machine's.
    pub(crate) memory: Option<MemoryCaller>,
}

impl Options {
    /// Creates options with a single attempt to connect and 30 seconds for an answer.
    pub fn new<A: TryInto<Addresses>>(addresses: A, identity: Identity) -> Self
    where
        AddressesError: From<A::Error>,
    {
        Self {
            addresses: addresses.try_into().map_err(AddressesError::from),
            start_at: StartAt::default(),
            trust: None,
            certificate: ClientCertificate::default(),
            identity,
            retry_timeout: Duration::ZERO,
            busy_retry_timeout: Duration::ZERO,
            unanswered_retry_timeout: Duration::ZERO,
            answer_within: Duration::from_secs(30),
            trace: None,
            seen: Seen::default(),
            memory: None,
        }
    }

    /// Creates options for controllers in a network in memory: without TLS, and beginning at the first address.
    pub fn in_memory(memory: MemoryCaller, addresses: &[SocketAddr], identity: Identity) -> Self {
        let mut options = Self::new("", identity).with_start(StartAt::First);
        options.addresses = Addresses::in_memory(addresses);
        options.memory = Some(memory);
        options
    }

    /// Shares what is seen with other clients: what one of them saw, none is shown without.
    pub fn with_seen(mut self, seen: Seen) -> Self {
        self.seen = seen;
        self
    }

    /// Puts the addresses in a network in memory.
    pub fn with_memory(mut self, memory: Option<MemoryCaller>) -> Self {
        self.memory = memory;
        self
    }

    /// Begins at this address.
    pub fn with_start(mut self, start_at: StartAt) -> Self {
        self.start_at = start_at;
        self
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

    /// Sets the time for which a user's request is sent again that was sent and not answered.
    pub fn with_unanswered_retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.unanswered_retry_timeout = retry_timeout;
        self
    }

    /// Sets the time for which a call retries after a busy controller's refusal.
    pub fn with_busy_retry_timeout(mut self, retry_timeout: Duration) -> Self {
        self.busy_retry_timeout = retry_timeout;
        self
    }
}

/// The address at which a client begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StartAt {
    /// A random one, and then the others in random order: many clients spread over their controllers.
    #[default]
    Random,
    /// The first of the list, and then the others as they stand there.
    First,
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
    /// Another controller of the same log.
    Controller,
}
