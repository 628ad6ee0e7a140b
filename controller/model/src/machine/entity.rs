//! The machine entity.

use periapt_host_api::{AgentName, MachineId, Timestamp, status::Life};
use serde::{Deserialize, Serialize};

/// A machine: the place of a principal unit and its subordinates. Its addresses and boot id are those of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// The machine's number.
    pub id: MachineId,
    /// The agent that hosts it.
    pub agent: AgentName,
    /// Alive or dying.
    pub life: Life,
    /// The time of the creation.
    pub created_at: Timestamp,
}
