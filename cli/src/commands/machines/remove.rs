//! `remove-machine`

use clap::Args;
use periapt_host_api::{MachineId, command::Command};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::{Failure, Result},
    parse::removal::{DryRunArg, ForceArgs},
    print::removal::report_one,
    prompt::PromptArg,
};

/// Remove machines that have no units
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt remove-machine 3\n  periapt remove-machine 3 --force")]
pub(crate) struct RemoveMachine {
    /// The machines' numbers
    #[arg(required = true)]
    machines: Vec<MachineId>,
    /// Accepted for compatibility with Juju; the agent always keeps running
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

impl Verb for RemoveMachine {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let names: Vec<_> = self.machines.iter().map(ToString::to_string).collect();
        if self.dry_run.dry_run {
            let known = model.client().machines(&model.selector).await?;
            if let Some(unknown) = names.iter().find(|name| !known.contains_key(*name)) {
                return Err(Failure::new(format!("machine {unknown} not found")));
            }
            return DryRunArg::print_plan(
                context,
                "machine",
                names.iter().map(|name| (name.as_str(), Vec::new())),
            );
        }
        self.prompt.confirm(&format!("This command will remove machine(s) {}.", names.join(", ")))?;
        let force = self.force.force();
        let command = |machine: &MachineId| Command::RemoveMachine { machine: *machine, force };
        let commands = self.machines.iter().map(command).collect();
        model
            .commands(commands, |index, answer| {
                report_one(context, "machine", &self.machines, index, &answer)
            })
            .await
    }
}
