//! `destroy-model`

use std::time::Duration;

use clap::Args;
use periapt_host_api::command::ControllerCommand;

use crate::{
    commands::Verb,
    context::{Context, Controller, ModelArg, ModelRef},
    error::{Failure, Result},
    follow::destroyed::Destroyed,
    parse::{
        duration,
        removal::{ForceArgs, GiveUpArg, StorageEndArgs},
    },
    prompt::PromptArg,
};

/// Destroy a model with all that is in it
///
/// Units run their stop and remove hooks. The command returns when the model is gone, prints the reasons of the wait,
/// and gives up after --give-up-after; the removal then goes on.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt destroy-model blog --no-prompt")]
pub(crate) struct DestroyModel {
    /// The model
    #[arg(value_name = "[CONTROLLER:]MODEL")]
    model: ModelRef,
    #[command(flatten)]
    force: ForceArgs,
    /// With --force: the longest wait for each step, as --max-wait
    #[arg(short, long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    #[command(flatten)]
    give_up: GiveUpArg,
    #[command(flatten)]
    storage: StorageEndArgs,
    #[command(flatten)]
    prompt: PromptArg,
}

impl Verb for DestroyModel {
    async fn run(self, context: &Context) -> Result<()> {
        let force = self.force.within(self.timeout);
        if self.timeout.is_some() && force.is_none() {
            return Err(Failure::misused(
                "--timeout can only be used with --force: without it no step is cut short",
            ));
        }
        let named = ModelArg { model: Some(self.model) };
        let model = context.model(&named)?;
        let client = model.client();
        let summary = client.model(&model.selector).await?;
        let (name, uuid) = (&summary.name, summary.uuid);
        self.prompt.confirm(&format!(
            "This command will destroy the model \"{name}\" with its {} application(s), {} unit(s) and {} \
             machine(s).",
            summary.applications, summary.units, summary.machines
        ))?;
        client
            .controller_command(ControllerCommand::DestroyModel {
                model: uuid,
                force,
                storage: self.storage.end(),
            })
            .await?;
        // No command may go to a dying model.
        let Controller { entry, user, .. } = &model.controller;
        if entry.current_model.as_ref().is_some_and(|current| current.is(&summary, user)) {
            model.controller.select(&context.data, None)?;
        }
        let forcing = format!("periapt destroy-model {name} --force");
        let give_up_after = self.give_up.give_up_after;
        Destroyed { client, model: Some(uuid), force, forcing, give_up_after }.gone(context).await?;
        context.say(format_args!("Model \"{name}\" is destroyed"));
        Ok(())
    }
}
