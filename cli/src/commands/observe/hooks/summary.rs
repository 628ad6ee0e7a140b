//! The number and durations of each unit's hooks.

use std::collections::BTreeMap;

use periapt_host_api::{
    UnitName,
    api::Journal,
    journal::{HookOutcome, JournalRecord},
};
use serde::Serialize;

use crate::output::{Table, Text, TextStyle};

/// One hook of one unit.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Row {
    unit: UnitName,
    hook: String,
    count: u32,
    failed: u32,
    median_us: u64,
    total_us: u64,
}

/// Returns the rows, by unit and hook.
pub(super) fn of(journal: &Journal) -> Vec<Row> {
    let mut runs: BTreeMap<(&UnitName, String), Vec<&JournalRecord>> = BTreeMap::new();
    for entry in &journal.entries {
        runs.entry((&entry.unit, super::hook(&entry.record))).or_default().push(&entry.record);
    }
    let row = |((unit, hook), records): ((&UnitName, String), Vec<&JournalRecord>)| {
        let mut times: Vec<u64> = records.iter().map(|record| record.costs.wall_us).collect();
        times.sort_unstable();
        let failed = |record: &&&JournalRecord| matches!(record.outcome, HookOutcome::Failed { .. });
        Row {
            unit: unit.clone(),
            hook,
            count: count(times.len()),
            failed: count(records.iter().filter(failed).count()),
            median_us: times.get(times.len() / 2).copied().unwrap_or_default(),
            total_us: times.iter().sum(),
        }
    };
    runs.into_iter().map(row).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Draws the table, with the sum of all rows.
pub(super) fn table(rows: &[Row]) -> Text {
    let heading = ["Unit", "Hook", "Count", "Failed", "Median µs", "Total µs"];
    let mut table = [2, 3, 4, 5].into_iter().fold(Table::new(heading), Table::right);
    for row in rows {
        let failed = row.failed.to_string();
        table.row([
            row.unit.to_string().into(),
            (&row.hook).into(),
            row.count.into(),
            (failed.as_str(), if row.failed == 0 { TextStyle::Faint } else { TextStyle::Bad }).into(),
            row.median_us.to_string().into(),
            row.total_us.to_string().into(),
        ]);
    }
    table.row([
        "total".into(),
        "".into(),
        rows.iter().map(|row| row.count).sum::<u32>().into(),
        rows.iter().map(|row| row.failed).sum::<u32>().into(),
        "".into(),
        rows.iter().map(|row| row.total_us).sum::<u64>().to_string().into(),
    ]);
    table.render()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        Digest, Revision,
        api::JournalEntry,
        event::Event,
        journal::{HookCosts, RecordedCalls},
    };

    use super::*;

    fn entry(unit: &str, event: Event, wall_us: u64, outcome: HookOutcome) -> JournalEntry {
        let record = JournalRecord {
            seq: 1,
            event,
            attempt: 1,
            snapshot: Revision(1),
            charm: Digest::of(b""),
            component: Digest::of(b""),
            engine: String::new(),
            started_at: periapt_host_api::Timestamp::UNIX_EPOCH,
            outcome,
            costs: HookCosts { wall_us, ..HookCosts::default() },
            coalesced: Vec::new(),
            calls: RecordedCalls::default(),
            seed: String::new(),
            sealed: None,
        };
        JournalEntry::new(unit.parse().unwrap(), Revision::default(), record)
    }

    #[test]
    fn runs_are_counted_by_unit_and_hook_with_their_median() {
        let failed = || HookOutcome::Failed { message: "no".into() };
        let journal = Journal {
            entries: vec![
                entry("a/10", Event::Install, 7, HookOutcome::Handled),
                entry("a/2", Event::ConfigChanged, 100, HookOutcome::Handled),
                entry("a/2", Event::ConfigChanged, 1, failed()),
                entry("a/2", Event::ConfigChanged, 10, HookOutcome::Handled),
            ],
            next: None,
        };
        let text = anstream::adapter::strip_str(&table(&of(&journal))).to_string();
        assert_eq!(
            text,
            "Unit   Hook            Count  Failed  Median µs  Total µs\n\
             a/2    config-changed      3       1         10       111\n\
             a/10   install             1       0          7         7\n\
             total                      4       1                  118\n"
        );
    }
}
