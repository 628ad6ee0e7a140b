//! `constraints`, `set-constraints`, `model-constraints`, `set-model-constraints`: where units are placed.

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command, constraints::Constraints as Asked};

use crate::{
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::OutputArgs,
};

/// Show an application's constraints
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt constraints mysql")]
pub(crate) struct Constraints {
    /// The application
    application: ApplicationName,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Say on which agents an application's new units are placed, and the memory of its hooks
///
/// mem is the setting hook-memory-limit; tags are those that agents run with (^TAG: not with it), zones their
/// availability zones. What is not named is not asked for any more; units that are placed stay where they are.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt set-constraints mysql mem=512M tags=ssd,^shared
  periapt set-constraints mysql zones=a,b
  periapt set-constraints mysql")]
pub(crate) struct SetConstraints {
    /// The application
    application: ApplicationName,
    /// Constraints KEY=VALUE; none: nothing is asked
    #[arg(value_name = "KEY=VALUE")]
    constraints: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

/// Show the constraints of applications that have none of their own
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt model-constraints --format yaml")]
pub(crate) struct ModelConstraints {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Say on which agents new units are placed of applications that do not say it themselves
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt set-model-constraints tags=ssd\n  periapt set-model-constraints"
)]
pub(crate) struct SetModelConstraints {
    /// Constraints KEY=VALUE; none: nothing is asked
    #[arg(value_name = "KEY=VALUE")]
    constraints: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

impl Constraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let details = model.client().application(&model.selector, &self.application).await?;
        show(context, &self.output, &details.constraints)
    }
}

impl SetConstraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let constraints = read(&self.constraints)?;
        let model = context.model(&self.model)?;
        model.command(Command::SetConstraints { application: self.application, constraints }).await.map(drop)
    }
}

impl ModelConstraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        show(context, &self.output, &model.client().model_constraints(&model.selector).await?)
    }
}

impl SetModelConstraints {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let constraints = read(&self.constraints)?;
        let model = context.model(&self.model)?;
        model.command(Command::SetModelConstraints { constraints }).await.map(drop)
    }
}

/// As Juju shows them: in a line, or as a map with lists.
fn show(context: &Context, output: &OutputArgs, constraints: &Asked) -> Result<()> {
    let map: serde_json::Map<String, serde_json::Value> = constraints
        .to_string()
        .split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| {
            let list = || value.split(',').filter(|one| !one.is_empty()).collect::<Vec<_>>();
            (key.to_owned(), if key == "mem" { value.into() } else { list().into() })
        })
        .collect();
    output.print(context.color, &map, |_| format!("{constraints}\n"))
}

/// Reads constraints as they are written on a command line.
pub(crate) fn read(texts: &[String]) -> Result<Asked> {
    Asked::parse(texts.iter().map(String::as_str)).map_err(|error| {
        Failure::new(error.to_string())
            .with_hint("mem=SIZE, tags=TAG,^TAG and zones=ZONE,... can be asked for")
    })
}
