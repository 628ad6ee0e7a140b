//! The rules that joins share, by a token of one name and by that of a pool.

use periapt_host_api::{AgentName, Refusal, Timestamp, agent::MAX_JOIN_VALIDITY};

/// The most names of agents that may be enrolled. Each takes some hundred bytes of the controller's memory.
pub(super) const MAX_ENROLMENTS: usize = 10_000;

/// Refuses a validity of join tokens that is none, or too long.
pub(super) fn check_validity(seconds: u64) -> Result<(), Refusal> {
    if (1..=MAX_JOIN_VALIDITY.as_secs()).contains(&seconds) {
        return Ok(());
    }
    let days = MAX_JOIN_VALIDITY.as_secs() / 86_400;
    Err(Refusal::bad_request(format!("a join token is valid for 1 second to {days} days")))
}

/// Returns the refusal of a join.
pub(super) fn refused(agent: &AgentName, text: &str) -> Refusal {
    Refusal::permission_denied(format!("{text}; `periapt agent-token {agent}` makes another one"))
        .about(format!("agent {agent}"))
}

/// Formats a time without fractions of a second.
pub(super) fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}
