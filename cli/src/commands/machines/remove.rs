//! `remove-machine`: of a model, and of several controllers.

use clap::Args;
use periapt_client::ClientError;
use periapt_host_api::{
    ErrorCode, MachineId,
    api::ModelSelector,
    command::{Command, ControllerCommand},
};

use crate::{
    commands::Verb,
    context::{Context, Controller, ModelArg},
    error::{Failure, Result},
    parse::removal::{DryRunArg, ForceArgs},
    print::removal::report_one,
    prompt::PromptArg,
};

/// Remove machines that have no units
///
/// With `-m controller`, unless there is a model of this name, remove controllers that share a log with others, by their
/// names in `periapt show-controller`. A controller that runs then ends; one that is gone is waited for no more, and is
/// not let in again without a new token.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt remove-machine 3\n  periapt remove-machine 3 --force\n  \
                  periapt remove-machine -m controller node-2")]
pub(crate) struct RemoveMachine {
    /// The machines' numbers, or the names of controllers
    #[arg(required = true, value_name = "MACHINE")]
    machines: Vec<String>,
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

/// The name of Juju's model of the controllers' machines.
const CONTROLLERS: &str = "controller";

impl Verb for RemoveMachine {
    async fn run(self, context: &Context) -> Result<()> {
        let named = context.named(self.model.model.as_ref())?;
        if let Some(named) = named.filter(|named| named.model.to_string() == CONTROLLERS) {
            let controller = context.controller(named.controller.as_ref())?;
            if !has_model(&controller, &named.model).await? {
                return self.remove_controllers(context, &controller).await;
            }
        }
        let model = context.model(&self.model)?;
        let machines = self.machines.iter().map(|number| {
            number.parse().map_err(|_| Failure::new(format!("{number:?} is not the number of a machine")))
        });
        let machines = machines.collect::<Result<Vec<MachineId>>>()?;
        let names: Vec<_> = machines.iter().map(ToString::to_string).collect();
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
        let commands = machines.iter().map(command).collect();
        model
            .commands(commands, |index, answer| report_one(context, "machine", &machines, index, &answer))
            .await
    }
}

impl RemoveMachine {
    /// Removes controllers that share a log.
    async fn remove_controllers(&self, context: &Context, controller: &Controller) -> Result<()> {
        if self.dry_run.dry_run {
            let members = controller.client.controller().await?.members;
            let is_unknown = |name: &&String| members.iter().all(|member| member.name != **name);
            if let Some(unknown) = self.machines.iter().find(is_unknown) {
                return Err(Failure::new(format!("controller \"{unknown}\" not found")));
            }
            let plan = self.machines.iter().map(|name| (name.as_str(), Vec::new()));
            return DryRunArg::print_plan(context, "controller", plan);
        }
        let names = self.machines.join(", ");
        self.prompt
            .confirm(&format!("This command will end controller(s) {names}, and refuse them from now on."))?;
        for name in &self.machines {
            let command = ControllerCommand::RemoveController { name: name.clone() };
            controller.client.controller_command(command).await?;
            context.say(format_args!("Controller \"{name}\" is removed"));
        }
        Ok(())
    }
}

/// Returns true if the controller has a model that this selects.
async fn has_model(controller: &Controller, model: &ModelSelector) -> Result<bool> {
    match controller.client.model(model).await {
        Ok(_) => Ok(true),
        Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}
