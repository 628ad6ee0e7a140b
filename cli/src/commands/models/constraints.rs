//! `model-constraints`, `set-model-constraints`: the placement of units of applications without constraints.

use clap::Args;
use periapt_host_api::command::Command;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::OutputArgs,
    parse::constraints::{read, tell_of_kept},
    print::constraints::show,
};

/// Show the constraints of applications that have none of their own
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt model-constraints --format yaml")]
pub(crate) struct ModelConstraints {
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Set the constraints of applications that have none of their own
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt set-model-constraints tags=ssd\n  periapt set-model-constraints"
)]
pub(crate) struct SetModelConstraints {
    /// Constraints KEY=VALUE; none removes all of them
    #[arg(value_name = "KEY=VALUE")]
    constraints: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for ModelConstraints {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        show(context, &self.output, &model.client().model_constraints(&model.selector).await?)
    }
}

impl Verb for SetModelConstraints {
    async fn run(self, context: &Context) -> Result<()> {
        let constraints = read(&self.constraints)?;
        let model = context.model(&self.model)?;
        model.command(Command::SetModelConstraints { constraints: constraints.clone() }).await?;
        tell_of_kept(context, &constraints);
        Ok(())
    }
}
