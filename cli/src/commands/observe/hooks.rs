//! `hooks`: the journal of hook runs, with their outcomes and costs.

mod summary;

use clap::Args;
use periapt_host_api::{
    UnitName,
    api::{Journal, JournalEntry},
};

use super::outcome::outcome;
use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    error::Result,
    output::{OutputArgs, Table, Text, to_the_second},
    print::status::all_units,
};

/// Show the journal of hooks: runs, results and costs
///
/// The controller keeps the newest hooks of each unit, also of units that are gone: these must be named. A second table
/// has the hooks that cannot be replayed, because the journal's bound left out a part of their calls or streams. The others
/// are replayed by `replay-hook`, by their Seq.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt hooks wordpress/0\n  periapt hooks --summary")]
pub(crate) struct Hooks {
    /// The units; all of the model's, if none is named
    units: Vec<UnitName>,
    /// Show the number and the durations of each hook's runs, instead of each run
    #[arg(long)]
    summary: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Hooks {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let units = match self.units.is_empty() {
            true => all_units(&model.client().status(&model.selector).await?)?,
            false => self.units,
        };
        let journal = journal(&model, units).await?;
        match self.summary {
            true => self.output.print(context.color, &summary::of(&journal), |rows| summary::table(rows)),
            false => self.output.print(context.color, &journal, table),
        }
    }
}

/// Returns the hooks of some units, by time. It asks for each unit, because one answer about all is cut
/// shorter.
async fn journal(model: &Model, units: Vec<UnitName>) -> Result<Journal> {
    let mut all = Journal::default();
    for unit in units {
        let journal = model.client().journal(&model.selector, Some(&unit)).await?;
        all.entries.extend(journal.entries);
    }
    all.entries.sort_by_key(|entry| entry.record.started_at);
    Ok(all)
}

fn table(journal: &Journal) -> Text {
    let heading =
        ["Time", "Unit", "Hook", "Result", "Attempt", "Microseconds", "Fuel", "Memory", "Calls", "Seq"];
    let mut table = (4..heading.len()).fold(Table::new(heading), Table::right);
    for JournalEntry { unit, record, .. } in &journal.entries {
        let costs = &record.costs;
        table.row([
            to_the_second(record.started_at).into(),
            unit.to_string().into(),
            hook(record).into(),
            outcome(&record.outcome).into(),
            record.attempt.into(),
            costs.wall_us.to_string().into(),
            costs.fuel.to_string().into(),
            format!("{} KiB", costs.memory / 1024).into(),
            costs.host_calls.to_string().into(),
            record.seq.to_string().into(),
        ]);
    }
    Text::joined([Some(table.render()), not_replayable(journal)].into_iter().flatten(), "\n")
}

/// Draws the hooks that cannot be replayed; none if there are none.
fn not_replayable(journal: &Journal) -> Option<Text> {
    let mut table = Table::new(["Time", "Unit", "Hook", "Not replayable"]);
    for JournalEntry { unit, record, not_replayable, .. } in &journal.entries {
        let Some(reason) = not_replayable else { continue };
        table.row([
            to_the_second(record.started_at).into(),
            unit.to_string().into(),
            hook(record).into(),
            reason.into(),
        ]);
    }
    (!table.is_empty()).then(|| table.render())
}

fn hook(record: &periapt_host_api::journal::JournalRecord) -> String {
    record.event.to_string()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        Digest, Revision, Timestamp,
        event::Event,
        journal::{HookOutcome, JournalRecord, RecordedCalls, Unrecorded},
    };

    use super::*;

    fn entry(event: Event, calls: RecordedCalls) -> JournalEntry {
        let digests = (Digest::of(b""), Digest::of(b""));
        let record = JournalRecord::of_no_run(
            1,
            event,
            HookOutcome::Handled,
            Revision(1),
            digests,
            Timestamp::UNIX_EPOCH,
        );
        JournalEntry::new("a/0".parse().unwrap(), Revision(1), JournalRecord { calls, ..record })
    }

    #[test]
    fn hooks_whose_streams_were_not_kept_are_listed_with_the_reason() {
        let whole = entry(Event::Install, RecordedCalls::default());
        let one = Journal { entries: vec![whole.clone()], next: None };
        assert!(!table(&one).contains("Not replayable"));
        let unrecorded = Unrecorded { limit: 262_144, streams: [("web".to_owned(), 700_000)].into() };
        let cut = entry(Event::Start, RecordedCalls { omitted: 3, unrecorded, ..RecordedCalls::default() });
        let both = Journal { entries: vec![whole, cut], next: None };
        let text = anstream::adapter::strip_str(&table(&both)).to_string();
        let (_, second) = text.split_once("\n\n").unwrap();
        assert_eq!(
            second,
            "Time                  Unit  Hook   Not replayable\n\
             1970-01-01 00:00:00Z  a/0   start  700000 bytes of its stream to web were not kept (limit 262144)\n"
        );
        let json = serde_json::to_value(&both).unwrap();
        let reason = json.pointer("/entries/1/not-replayable").unwrap();
        assert_eq!(reason, "700000 bytes of its stream to web were not kept (limit 262144)");
        assert_eq!(json.pointer("/entries/0/not-replayable"), None);
    }
}
