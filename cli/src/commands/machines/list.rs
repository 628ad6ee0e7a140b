//! `machines` and `remove-machine`.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{MachineId, command::Command, status::MachineStatus};
use serde::Serialize;

use crate::{
    commands::applications::units::said,
    context::{Context, ModelArg},
    error::{Failure, Result},
    output::{OutputArgs, Times},
    parse::removal::{DryRunArg, ForceArgs},
    print::status as tabular,
    prompt::PromptArg,
};

/// List a model's machines
#[derive(Debug, Args)]
pub(crate) struct Machines {
    /// Times as 2026-01-02 15:04:05Z
    #[arg(long)]
    utc: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Remove machines that have no units
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt remove-machine 3\n  periapt remove-machine 3 --force")]
pub(crate) struct RemoveMachine {
    /// The machines' numbers
    #[arg(required = true)]
    machines: Vec<MachineId>,
    /// Taken for Juju's sake: an agent goes on without its machines
    #[arg(long, hide = true)]
    keep_instance: bool,
    #[command(flatten)]
    dry_run: DryRunArg,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    model: ModelArg,
}

/// Machines as Juju prints them: with their model.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    pub(crate) model: String,
    pub(crate) machines: BTreeMap<String, MachineStatus>,
}

impl Machines {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let status = model.client().status(&model.selector).await?;
        let listing = Listing { model: status.model.name, machines: status.machines };
        let tree = Times::of_utc(self.utc).written(&listing)?;
        self.output.print(context.color, &tree, |_| tabular::machines(&listing.machines).render())
    }
}

impl RemoveMachine {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let names: Vec<_> = self.machines.iter().map(ToString::to_string).collect();
        if self.dry_run.dry_run {
            let known = model.client().machines(&model.selector).await?;
            if let Some(unknown) = names.iter().find(|name| !known.contains_key(*name)) {
                return Err(Failure::new(format!("machine {unknown} not found")));
            }
            return DryRunArg::tell(context, "machine", names.iter().map(|name| (name.as_str(), Vec::new())));
        }
        self.prompt.confirm(&format!("This command will remove machine(s) {}.", names.join(", ")))?;
        let force = self.force.force();
        let command = |machine: &MachineId| Command::RemoveMachine { machine: *machine, force };
        let commands = self.machines.iter().map(command).collect();
        model
            .commands(commands, |index, answer| said(context, "machine", &self.machines, index, &answer))
            .await
    }
}
