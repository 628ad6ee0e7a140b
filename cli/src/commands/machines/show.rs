//! `show-machine`

use clap::Args;
use periapt_host_api::MachineId;

use super::listing::Listing;
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Times},
};

/// Show details of machines
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt show-machine\n  periapt show-machine 0 3 --format json")]
pub(crate) struct ShowMachine {
    /// The machines' numbers; none: all
    machines: Vec<MachineId>,
    /// Times as 2026-01-02 15:04:05Z
    #[arg(long)]
    utc: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for ShowMachine {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut status = model.client().status(&model.selector).await?;
        let wanted: Vec<_> = self.machines.iter().map(ToString::to_string).collect();
        if let Some(unknown) = wanted.iter().find(|number| !status.machines.contains_key(*number)) {
            return Err(Failure::new(format!("machine {unknown} not found"))
                .with_hint("`periapt machines` lists them"));
        }
        if !wanted.is_empty() {
            status.machines.retain(|number, _| wanted.contains(number));
        }
        let shown = Listing { model: status.model.name, machines: status.machines };
        let tree = Times::of_utc(self.utc).written(&shown)?;
        self.output.or_yaml().print(context.color, &tree, |_| String::new())
    }
}
