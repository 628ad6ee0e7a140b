//! `show-task`: a task's status and results.

use std::{collections::BTreeMap, path::PathBuf};

use clap::Args;
use periapt_host_api::TaskId;
use tokio::time::Instant;

use super::{
    follow::follow,
    shown::{self, Format, plain_task},
    waiting::WaitArgs,
};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{Sink, to_json, to_yaml},
};

/// Show a task's results
///
/// Without --wait or --watch, it shows the present state.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt show-task 2
  periapt show-task 2 --wait 5m --format yaml
  periapt show-task 2 --watch")]
pub(crate) struct ShowTask {
    /// The task's number
    id: TaskId,
    #[command(flatten)]
    waiting: WaitArgs,
    /// Show times in UTC, as they always are
    #[arg(long)]
    utc: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "plain")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for ShowTask {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut task = model.client().task(&model.selector, self.id).await?;
        if let Some(wait) = self.waiting.longest_wait().filter(|_| task.status.is_open()) {
            let waited = BTreeMap::from([(task.id, task.unit.clone())]);
            follow(&model, task.operation, &waited, Instant::now() + wait).await?;
            task = model.client().task(&model.selector, self.id).await?;
        }
        let text = match self.format {
            Format::Plain => plain_task(&task)?,
            Format::Json => to_json(&shown::Task::from(&task))?,
            Format::Yaml => to_yaml(&shown::Task::from(&task))?,
        };
        Sink::new(self.output.as_deref(), context.color)?.write(&text)
    }
}
