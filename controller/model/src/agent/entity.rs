//! Agents, their enrolment, and runners.

use periapt_host_api::{AgentName, Digest, Incarnation, Timestamp, agent::Register};
use serde::{Deserialize, Serialize};

/// A registered agent. Its connection state is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Agent {
    /// The agent's name, unique in the controller.
    pub name: AgentName,
    /// The description of its host that it sent at its last start.
    pub host: Register,
    /// The time of its first registration.
    pub created_at: Timestamp,
}

/// The runner of one model on one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Runner {
    /// The agent.
    pub agent: AgentName,
    /// The current attachment, whose commits are accepted. Every attach raises the number.
    pub incarnation: Incarnation,
}

/// The enrolment of one agent's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Enrolment {
    /// The agent's name.
    pub agent: AgentName,
    /// The SHA-256 digest of the public key of the agent that has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// The newest join token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<JoinToken>,
}

/// A pool of agents that join with one token: of names that begin with the pool's name and a hyphen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgentPool {
    /// The pool's name.
    pub name: AgentName,
    /// The token's digest.
    pub token: Digest,
    /// The time from which the token is refused.
    pub expires_at: Timestamp,
    /// The number of agents that may still join.
    pub uses: u32,
}

/// A join token, known by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct JoinToken {
    /// The token's digest.
    pub digest: Digest,
    /// The time from which it is refused.
    pub expires_at: Timestamp,
    /// The time of its use; none while it can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
}
