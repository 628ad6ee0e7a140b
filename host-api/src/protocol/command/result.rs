//! Commands in bulk, and their results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{problem::Refusal, trace::TraceContext};

/// The result of one command of a bulk call. Results are as many as the commands, in the same order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommandResult<T> {
    /// The command succeeded.
    Ok(T),
    /// The command was refused and had no effect.
    Error(Refusal),
}

impl<T> From<Result<T, Refusal>> for CommandResult<T> {
    fn from(result: Result<T, Refusal>) -> Self {
        match result {
            Ok(answer) => Self::Ok(answer),
            Err(refusal) => Self::Error(refusal),
        }
    }
}

impl<T> From<CommandResult<T>> for Result<T, Refusal> {
    fn from(result: CommandResult<T>) -> Self {
        match result {
            CommandResult::Ok(answer) => Ok(answer),
            CommandResult::Error(refusal) => Err(refusal),
        }
    }
}

/// The body of `POST /v1/models/MODEL/commands`. Commands are independent: a refused one does not stop the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Commands<C> {
    /// The commands, in order.
    pub commands: Vec<C>,
    /// The span that each command comes from, in the same order; where the list ends, the request's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<Option<TraceContext>>,
}

impl<C> From<Vec<C>> for Commands<C> {
    fn from(commands: Vec<C>) -> Self {
        Self { commands, traces: Vec::new() }
    }
}

/// The answer to [`Commands`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CommandResults<T> {
    /// One result for each command, in the same order.
    pub results: Vec<CommandResult<T>>,
    /// The revision at which all effects can be read.
    pub revision: crate::Revision,
}
