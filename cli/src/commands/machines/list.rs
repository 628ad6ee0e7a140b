//! `machines`

use clap::Args;

use super::listing::Listing;
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{OutputArgs, Times},
    print::status as tabular,
};

/// List a model's machines
#[derive(Debug, Args)]
#[command(visible_alias = "list-machines")]
pub(crate) struct Machines {
    /// Times as 2026-01-02 15:04:05Z
    #[arg(long)]
    utc: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Machines {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let status = model.client().status(&model.selector).await?;
        let listing = Listing { model: status.model.name, machines: status.machines };
        let tree = Times::of_utc(self.utc).written(&listing)?;
        self.output.print(context.color, &tree, |_| tabular::machines(&listing.machines).render())
    }
}
