//! Agents, and their runners.

use periapt_host_api::{AgentName, Incarnation, Timestamp, agent::Register};
use serde::{Deserialize, Serialize};

/// An agent, as it registered. Whether it is connected now is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Agent {
    /// Its name, unique in the controller.
    pub name: AgentName,
    /// What it said of its host at its last start.
    pub host: Register,
    /// When it registered first.
    pub created_at: Timestamp,
}

/// The runner of one model on one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Runner {
    /// The agent.
    pub agent: AgentName,
    /// The attachment whose commits are taken; every attach raises it.
    pub incarnation: Incarnation,
}
