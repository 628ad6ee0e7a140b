//! Machines.

use periapt_host_api::{AgentName, MachineId, Timestamp, status::Life};
use serde::{Deserialize, Serialize};

/// A machine: a place for a principal unit and its subordinates. Addresses and boot id are its agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// Its number.
    pub id: MachineId,
    /// The agent that hosts it.
    pub agent: AgentName,
    /// Alive or dying.
    pub life: Life,
    /// When it was made.
    pub created_at: Timestamp,
}
