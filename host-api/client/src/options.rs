//! How a client is set up.

use std::time::Duration;

use periapt_host_api::{AgentName, UserName};

/// What a [`Client`](crate::Client) is made from.
#[derive(Debug, Clone)]
pub struct Options {
    /// The controller, such as `http://127.0.0.1:17070`.
    pub url: String,
    /// Who calls.
    pub identity: Identity,
    /// How long a call goes on trying to reach a controller that does not answer, with growing pauses between
    /// the attempts; zero: one attempt.
    pub patience: Duration,
    /// How long a call goes on that a busy controller refuses, with growing pauses between the attempts; zero: one
    /// attempt. Nothing of what is refused so has happened.
    pub busy_patience: Duration,
    /// How long the controller may take to answer one call. Streams are not bound by it once they are open.
    pub answer_within: Duration,
}

impl Options {
    /// For one controller and caller: one attempt to connect, and half a minute for an answer.
    pub fn new(url: impl Into<String>, identity: Identity) -> Self {
        Self {
            url: url.into(),
            identity,
            patience: Duration::ZERO,
            busy_patience: Duration::ZERO,
            answer_within: Duration::from_secs(30),
        }
    }

    /// Goes on trying to connect for so long.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Goes on for so long with a call that a busy controller refuses.
    pub fn with_busy_patience(mut self, patience: Duration) -> Self {
        self.busy_patience = patience;
        self
    }
}

/// Who calls. On loopback the controller believes it; certificates will take its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Identity {
    /// Whoever may reach the controller's address.
    #[default]
    Local,
    /// A user.
    User(UserName),
    /// An agent's keeper, for itself and for its runners.
    Agent(AgentName),
}
