//! Agents and runners.

use periapt_host_api::{AgentName, Incarnation, Timestamp, agent::Register};
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
