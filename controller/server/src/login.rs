//! Logins: the hashes of passwords, the tokens of sessions, and the bounds on failed attempts, those of agents to join
//! included.

mod passwords;
mod throttle;

use std::sync::Arc;

use periapt_host_api::{
    AgentName, Timestamp, UserName,
    token::{TOKEN_BYTES, Token, TokenKind},
};

pub(crate) use self::{passwords::Passwords, throttle::Throttle};
use crate::{clock::RandomSource, network::Network};

/// The time after which a session of a person ends: 30 days. A login opens another one.
pub(crate) const SESSION_SECONDS: u64 = 30 * 24 * 3600;

/// The time after which a registration token ends: 7 days.
pub(crate) const REGISTRATION_SECONDS: u64 = 7 * 24 * 3600;

/// The longest lifetime of an API token: 10 years.
pub(crate) const MAX_TOKEN_SECONDS: u64 = 10 * 366 * 24 * 3600;

/// The parts that logins need. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Logins {
    pub(crate) passwords: Passwords,
    /// The failed logins of users.
    pub(crate) throttle: Throttle<UserName>,
    /// The failed joins of agents.
    pub(crate) joins: Throttle<AgentName>,
    pub(crate) random: Arc<dyn RandomSource>,
}

impl Logins {
    pub(crate) fn new(random: Arc<dyn RandomSource>) -> Self {
        let passwords = Passwords::new(Arc::clone(&random));
        Self { passwords, throttle: Throttle::of("logins"), joins: Throttle::of("joins"), random }
    }

    /// Draws a new token.
    pub(crate) fn token(&self, kind: TokenKind) -> Token {
        let mut secret = [0; TOKEN_BYTES];
        for half in secret.chunks_mut(TOKEN_BYTES / 2) {
            half.copy_from_slice(&self.random.seed());
        }
        Token::new(kind, secret)
    }
}

/// The name that a login or join gives, and the network that it comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Attempt<N> {
    pub(crate) name: N,
    pub(crate) network: Network,
}

/// Returns the time some seconds after `now`.
pub(crate) fn after(now: Timestamp, seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
