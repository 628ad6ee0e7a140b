//! The callers of commands and requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentName, ModelUuid, UserName};

/// The caller of a command or request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    /// A person, or a program that acts for one.
    User(UserName),
    /// The keeper of an agent.
    Agent(AgentName),
    /// The runner of one model; the agent's keeper vouches for it.
    Runner {
        /// The agent.
        agent: AgentName,
        /// The runner's model.
        model: ModelUuid,
    },
    /// A worker of the controller.
    Worker,
}
