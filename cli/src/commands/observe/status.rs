//! `status`: the state of a model.

mod filter;
mod oneline;
mod summary;
mod watch;

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use periapt_host_api::status::FullStatus;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{Sink, Text, Times, to_json, to_yaml},
    parse::duration,
    print::status::{self as tabular, Section},
};

/// Show a model's applications, units, machines and relations
///
/// With patterns it shows matches only: an application, a unit, a machine's number, with `*` for anything;
/// APPLICATION/leader, the status of a unit or its agent, or `exposed`. Parts that belong to a match are shown with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt status
  periapt status mysql 'wordpress/*'
  periapt status blocked error
  periapt status --relations --storage --watch 2s
  periapt status --format json")]
pub(crate) struct Status {
    /// Applications, units, machines, or statuses
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "tabular")]
    format: Format,
    /// Show relations, too
    #[arg(long, visible_alias = "integrations")]
    relations: bool,
    /// Show storage, too
    #[arg(long)]
    storage: bool,
    /// Times as 2026-01-02 15:04:05Z
    #[arg(long)]
    utc: bool,
    /// Accepted for compatibility with Juju; an unreachable controller is an error at once
    #[arg(long, hide = true, value_name = "COUNT")]
    retry_count: Option<u32>,
    /// Accepted for compatibility with Juju, as --retry-count is
    #[arg(long, hide = true, value_name = "TIME", value_parser = duration::parse)]
    retry_delay: Option<Duration>,
    /// Show it again after each change, at most this often
    #[arg(long, value_name = "TIME", value_parser = duration::parse, num_args = 0..=1, default_missing_value = "2s")]
    watch: Option<Duration>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "watch")]
    output: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArg,
}

/// The formats of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for people
    Tabular,
    /// JSON, on one line
    Json,
    /// YAML
    Yaml,
    /// A line per unit
    #[value(alias = "short", alias = "line")]
    Oneline,
    /// Counts
    Summary,
}

impl Verb for Status {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        if let Some(every) = self.watch {
            return watch::redraw(context, &model, every, |status| self.render(&self.kept(status))).await;
        }
        let status = model.client().status(&model.selector).await?;
        let status = self.kept(status);
        let text = self.render(&status)?;
        Sink::new(self.output.as_deref(), context.color)?.write(&text)?;
        match (is_empty(&status), self.patterns.len()) {
            (false, _) => {}
            (true, 0) => context.say(format_args!("Model \"{}\" is empty.", status.model.name)),
            (true, 1) => context.say("Nothing matched specified filter."),
            (true, _) => context.say("Nothing matched specified filters."),
        }
        Ok(())
    }
}

impl Status {
    /// Returns the part of the status that matches the patterns.
    fn kept(&self, mut status: FullStatus) -> FullStatus {
        filter::keep(&mut status, &self.patterns);
        status
    }

    fn render(&self, status: &FullStatus) -> Result<Text> {
        match self.format {
            Format::Tabular => {
                let relations = self.relations.then_some(Section::Relations);
                let storage = self.storage.then_some(Section::Storage);
                let sections: Vec<_> = relations.into_iter().chain(storage).collect();
                Ok(tabular::render(status, &sections))
            }
            Format::Json => to_json(&Times::of_utc(self.utc).written(status)?),
            Format::Yaml => to_yaml(&Times::of_utc(self.utc).written(status)?),
            Format::Oneline => Ok(oneline::render(status).into()),
            Format::Summary => Ok(summary::render(status).into()),
        }
    }
}

/// Returns true if a model is empty.
fn is_empty(status: &FullStatus) -> bool {
    let FullStatus { applications, remote_applications, machines, offers, .. } = status;
    applications.is_empty() && remote_applications.is_empty() && machines.is_empty() && offers.is_empty()
}
