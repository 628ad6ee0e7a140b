//! The newest hooks of a unit, with the changes that each absorbed.

use std::collections::BTreeSet;

use periapt_host_api::{
    Timestamp, UnitName,
    journal::{HookOutcome, JournalRecord},
};
use serde::Serialize;

use crate::{
    commands::observe::outcome::outcome,
    output::{Table, Text, to_the_second},
};

/// One hook.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ShownHook {
    at: Timestamp,
    hook: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_unit: Option<String>,
    result: HookOutcome,
    attempt: u32,
    /// The changes that were merged into it, that it made moot, or that were left out for it, in
    /// words.
    absorbed: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<ShownBatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_replayable: Option<String>,
}

/// The members of a batch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownBatch {
    application_changed: bool,
    joined: BTreeSet<UnitName>,
    changed: BTreeSet<UnitName>,
    departed: BTreeSet<UnitName>,
}

impl From<JournalRecord> for ShownHook {
    fn from(record: JournalRecord) -> Self {
        let batch = record.event.batch().map(|batch| ShownBatch {
            application_changed: batch.application_changed,
            joined: batch.joined.clone(),
            changed: batch.changed.clone(),
            departed: batch.departed.clone(),
        });
        Self {
            not_replayable: record.why_not_replayable(),
            at: record.started_at,
            hook: record.event.to_string(),
            remote_unit: record.event.remote_unit().map(ToString::to_string),
            result: record.outcome,
            attempt: record.attempt,
            absorbed: record.coalesced,
            batch,
        }
    }
}

/// Draws one line for each hook, and one more for each further change that it absorbed.
pub(super) fn table<'a>(units: impl Iterator<Item = (&'a str, &'a [ShownHook])>) -> Text {
    let mut table = Table::new(["Time", "Unit", "Hook", "Result", "Attempt", "Absorbed"]).right(4);
    for (unit, hooks) in units {
        for hook in hooks {
            let name = match &hook.remote_unit {
                Some(remote) => format!("{} {remote}", hook.hook),
                None => hook.hook.clone(),
            };
            let mut absorbed = hook.absorbed.iter();
            table.row([
                to_the_second(hook.at).into(),
                unit.into(),
                name.as_str().into(),
                outcome(&hook.result).into(),
                hook.attempt.into(),
                absorbed.next().map_or("", String::as_str).into(),
            ]);
            for more in absorbed {
                table.row(["".into(), "".into(), "".into(), "".into(), "".into(), more.as_str().into()]);
            }
        }
    }
    table.render()
}
