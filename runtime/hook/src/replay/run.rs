//! The parts of a journal record that a replay needs.

use periapt_host_api::{
    exec,
    journal::{HookOutcome, JournalRecord, RecordedCalls},
};
use serde::{Deserialize, Serialize};

use crate::recorder::BEGIN;

/// The budgets of a run, as its record has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RecordedBudgets {
    /// The linear memory of all memories together, in bytes.
    pub memory: u64,
    /// The CPU time, in units of fuel.
    pub fuel: u64,
    /// The wall time of the whole run, in milliseconds.
    pub wall_ms: u64,
    /// The number of host calls.
    pub host_calls: u64,
    /// The bytes in `/tmp`.
    pub tmp_bytes: u64,
    /// The files and directories in `/tmp`.
    pub tmp_files: u64,
}

/// A run that can be replayed from its record.
#[derive(Debug, Clone)]
pub struct ReplayableRun {
    /// The budgets of the run.
    pub budgets: RecordedBudgets,
    /// The calls, with their answers.
    pub calls: RecordedCalls,
}

/// The reason why a hook cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotReplayable {
    /// The hook was not run.
    #[error("the hook was not run: {0}")]
    NotRun(&'static str),
    /// The run did not reach the charm's code.
    #[error("the charm's code did not begin: {0}")]
    NotBegun(String),
    /// A part of its calls or streams was not recorded.
    #[error("{0}")]
    NotRecorded(String),
    /// A script runs outside of the charm's code.
    #[error("it is a script of `exec`, and the journal has no script's files")]
    Script,
    /// The hook read the content of a resource.
    #[error("the hook read the content of resource {0}, which the journal does not have")]
    Resource(String),
    /// An earlier release recorded the run.
    #[error("the release that recorded it did not record its environment and its budgets")]
    EarlierRelease,
}

impl ReplayableRun {
    /// Returns what a replay needs of a record with its calls.
    ///
    /// # Errors
    /// [`NotReplayable`]
    pub fn of(record: &JournalRecord) -> Result<Self, NotReplayable> {
        match &record.outcome {
            HookOutcome::Skipped => return Err(NotReplayable::NotRun("an operator skipped it")),
            HookOutcome::Moot => return Err(NotReplayable::NotRun("it became moot before")),
            // A run that began has used fuel.
            HookOutcome::Failed { message } if record.costs.fuel == 0 => {
                return Err(NotReplayable::NotBegun(message.clone()));
            }
            HookOutcome::Handled | HookOutcome::Unhandled | HookOutcome::Failed { .. } => {}
        }
        if record.event.task().is_some() && record.event.hook_name() == exec::ACTION {
            return Err(NotReplayable::Script);
        }
        if let Some(reason) = record.why_not_replayable() {
            return Err(NotReplayable::NotRecorded(reason));
        }
        let calls = &record.calls;
        if let Some(call) = calls.calls.iter().find(|call| call.function == "resources.fetched") {
            let name = serde_json::from_str::<(String,)>(&call.arguments).map(|(name,)| name);
            return Err(NotReplayable::Resource(name.unwrap_or_else(|_| call.arguments.clone())));
        }
        let first = calls.calls.first().filter(|call| call.function == BEGIN);
        let budgets = first.and_then(|call| serde_json::from_str(&call.arguments).ok());
        let budgets = budgets.ok_or(NotReplayable::EarlierRelease)?;
        Ok(Self { budgets, calls: calls.clone() })
    }
}
