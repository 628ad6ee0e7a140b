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
/// The controller keeps the newest hooks of each unit, also of units that are gone: these must be named.
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
    let heading = ["Time", "Unit", "Hook", "Result", "Attempt", "Microseconds", "Fuel", "Memory", "Calls"];
    let mut table = [4, 5, 6, 7, 8].into_iter().fold(Table::new(heading), Table::right);
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
        ]);
    }
    table.render()
}

fn hook(record: &periapt_host_api::journal::JournalRecord) -> String {
    record.event.to_string()
}
