//! `constraints`, `set-constraints`: the placement of an application's units.

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::OutputArgs,
    parse::constraints::{read, tell_of_kept},
    print::constraints::show,
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

/// Set an application's constraints: the agents of new units, and the memory of hooks
///
/// mem is the setting hook-memory-limit; tags are those that agents run with (^TAG: not with it), zones their
/// availability zones. Constraints that are not named are removed; placed units stay where they are. Juju's constraints
/// on machines (root-disk, virt-type, more memory than a hook may have) are stored without effect.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt set-constraints mysql mem=512M tags=ssd,^shared
  periapt set-constraints mysql zones=a,b
  periapt set-constraints mysql")]
pub(crate) struct SetConstraints {
    /// The application
    application: ApplicationName,
    /// Constraints KEY=VALUE; none removes all of them
    #[arg(value_name = "KEY=VALUE")]
    constraints: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Constraints {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let details = model.client().application(&model.selector, &self.application).await?;
        show(context, &self.output, &details.constraints)
    }
}

impl Verb for SetConstraints {
    async fn run(self, context: &Context) -> Result<()> {
        let constraints = read(&self.constraints)?;
        let model = context.model(&self.model)?;
        let command =
            Command::SetConstraints { application: self.application, constraints: constraints.clone() };
        model.command(command).await?;
        tell_of_kept(context, &constraints);
        Ok(())
    }
}
