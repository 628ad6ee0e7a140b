//! `constraints`, `set-constraints`, `model-constraints`, `set-model-constraints`: where units are placed.

use std::collections::BTreeSet;

use clap::Args;
use periapt_host_api::{
    ApplicationName,
    command::Command,
    constraints::{Constraints as Asked, Tags},
};
use serde::Serialize;

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

/// As Juju shows them: in a line, or with mebibytes and lists.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(skip_serializing_if = "Option::is_none")]
    cores: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mem: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    zones: Option<BTreeSet<String>>,
}

impl Shown {
    pub(crate) fn of(constraints: &Asked) -> Self {
        Self {
            cores: constraints.agents.cores,
            mem: constraints.mem.map(|bytes| bytes.div_ceil(1 << 20)),
            tags: constraints.agents.tags.as_ref().map(Tags::to_texts),
            zones: constraints.agents.zones.clone(),
        }
    }
}

fn show(context: &Context, output: &OutputArgs, constraints: &Asked) -> Result<()> {
    output.print(context.color, &Shown::of(constraints), |_| format!("{constraints}\n"))
}

/// Reads constraints as they are written on a command line.
pub(crate) fn read(texts: &[String]) -> Result<Asked> {
    Asked::parse(texts.iter().map(String::as_str)).map_err(|error| {
        Failure::new(error.to_string())
            .with_hint("cores=COUNT, mem=SIZE, tags=TAG,^TAG and zones=ZONE,... can be asked for")
    })
}
