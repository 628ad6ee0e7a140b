//! What a hook left behind.

use periapt_hook::ActionGathered;
use periapt_host_api::{
    commit::{EarlyEffect, HookEffects},
    journal::HookCosts,
};
use periapt_sandbox::{HookError, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One hook that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Tried {
    /// How it ended.
    pub outcome: Ended,
    /// What it asked for. Of a hook that failed nothing would be done, so nothing stands here.
    pub effects: HookEffects,
    /// What took effect whatever became of it, in order: statuses, the version, log lines.
    pub early: Vec<EarlyEffect>,
    /// What an action left; none for hooks. It counts in every case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionTried>,
    /// What it cost.
    pub costs: HookCosts,
}

/// How a hook ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The handler returned ok.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// It failed.
    Failed {
        /// `failed` if the handler said so itself; else what ended it, such as `trapped` or `cpu-budget`.
        kind: String,
        /// What author and operator read.
        message: String,
        /// As a process's exit code.
        code: i32,
    },
}

/// What an action left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ActionTried {
    /// What it set.
    pub results: Map<String, Value>,
    /// What it failed with, if it said that it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Handled => Self::Handled,
            Outcome::Unhandled => Self::Unhandled,
            Outcome::Failed(HookError { kind, message, code }) => {
                Self::Failed { kind: kind.as_str().to_owned(), message, code }
            }
        }
    }
}

impl From<ActionGathered> for ActionTried {
    fn from(gathered: ActionGathered) -> Self {
        let ActionGathered { values, failed, stdout, stderr } = gathered;
        Self { results: values, failed, stdout, stderr }
    }
}
