//! Who asks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AgentName, ModelUuid, UserName};

/// Who asks. An argument of every command from the first day.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    /// A person, or a program that acts for one.
    User(UserName),
    /// An agent's keeper, for itself.
    Agent(AgentName),
    /// The runner of one model, as its agent's keeper stamps it.
    Runner {
        /// The agent.
        agent: AgentName,
        /// The runner's model.
        model: ModelUuid,
    },
    /// One of the controller's own workers.
    Worker,
}
