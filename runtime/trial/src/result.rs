//! The outcome of a hook in a trial.

use periapt_hook::ActionResults;
use periapt_host_api::{
    commit::{EarlyEffect, HookEffects},
    journal::HookCosts,
};
use periapt_sandbox::{HandlerOutcome, HookError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The outcome of one hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct TrialResult {
    /// The end of the hook.
    pub outcome: TrialOutcome,
    /// The effects. A failed hook has none.
    pub effects: HookEffects,
    /// The early effects, which a failed hook has, too, in order: statuses, the version, log lines.
    pub early: Vec<EarlyEffect>,
    /// The action's outcome; none for hooks. A failed action has one, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<ActionTrialResult>,
    /// The costs.
    pub costs: HookCosts,
}

/// The end of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrialOutcome {
    /// The handler returned ok.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// The hook failed.
    Failed {
        /// `failed` if the handler returned the error, else the cause, such as `trapped` or `cpu-budget`.
        kind: String,
        /// The message, for author and operator.
        message: String,
        /// The exit code of an equivalent process.
        code: i32,
    },
}

/// The outcome of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ActionTrialResult {
    /// The results that the action set.
    pub results: Map<String, Value>,
    /// The failure message, if the action failed itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

impl From<HandlerOutcome> for TrialOutcome {
    fn from(outcome: HandlerOutcome) -> Self {
        match outcome {
            HandlerOutcome::Handled => Self::Handled,
            HandlerOutcome::Unhandled => Self::Unhandled,
            HandlerOutcome::Failed(HookError { kind, message, code }) => {
                Self::Failed { kind: kind.as_str().to_owned(), message, code }
            }
        }
    }
}

impl From<ActionResults> for ActionTrialResult {
    fn from(gathered: ActionResults) -> Self {
        let ActionResults { values, failed, stdout, stderr } = gathered;
        Self { results: values, failed, stdout, stderr }
    }
}
