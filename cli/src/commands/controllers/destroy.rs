//! `destroy-controller` and `kill-controller`.

use std::{fs, io::ErrorKind, time::Duration};

use clap::Args;
use periapt_client::Client;
use periapt_host_api::{
    ErrorCode, Refusal,
    command::{Answer, ControllerCommand, Force, ModelSummary},
};

use crate::{
    commands::Verb,
    context::models_by_name,
    context::{Context, Controller},
    data::{ClientData, ControllerName, LastSeen},
    error::{Explain as _, Failure, Result},
    follow::destroyed::Destroyed,
    local,
    parse::duration,
    parse::removal::{GiveUpArg, StorageEndArgs, wait_of},
    prompt::PromptArg,
};

/// Destroy a controller that was bootstrapped on this machine, with its data
///
/// Its models are destroyed first, in order: units run their stop and remove hooks. Of a controller that was
/// bootstrapped elsewhere only this client's entry is removed.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt destroy-controller local --destroy-all-models --no-prompt")]
pub(crate) struct DestroyController {
    /// The controller
    name: ControllerName,
    /// Destroy all its models, too
    #[arg(long)]
    destroy_all_models: bool,
    /// Remove units by force if they take too long
    #[arg(long, requires = "destroy_all_models")]
    force: bool,
    /// With --force: do not wait at all
    #[arg(long, requires = "force")]
    no_wait: bool,
    /// With --force: the longest wait for each step
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    model_timeout: Option<Duration>,
    #[command(flatten)]
    give_up: GiveUpArg,
    #[command(flatten)]
    storage: StorageEndArgs,
    #[command(flatten)]
    prompt: PromptArg,
}

/// Kill a controller that does not answer, and delete its data
#[derive(Debug, Args)]
pub(crate) struct KillController {
    /// The controller
    name: ControllerName,
    /// Accepted for compatibility with Juju; the command never waits for the controller
    #[arg(short, long, hide = true, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    #[command(flatten)]
    prompt: PromptArg,
}

impl Verb for DestroyController {
    async fn run(self, context: &Context) -> Result<()> {
        if self.model_timeout.is_some() && !self.force {
            return Err(Failure::misused(
                "--model-timeout can only be used with --force: without it no step is cut short",
            ));
        }
        let controller = context.controller(Some(&self.name))?;
        self.prompt.confirm(&format!(
            "This command will destroy the controller \"{}\" and all its data.",
            self.name
        ))?;
        if controller.entry.local.is_some() {
            self.destroy_models(context, &controller.client).await.map_err(|failure| match failure {
                Failure::Failed { message, hint: Some(hint) } if hint.contains("controller start") => {
                    Failure::new(message).with_hint(format!(
                        "`periapt controller start {0}` starts it; `periapt kill-controller {0}` removes it \
                         without asking it",
                        self.name
                    ))
                }
                other => other,
            })?;
        }
        remove(context, &controller).await
    }
}

impl DestroyController {
    async fn destroy_models(&self, context: &Context, client: &Client) -> Result<()> {
        let models = models_by_name(client).await?;
        if models.is_empty() {
            return Ok(());
        }
        let names = models.iter().map(|model| model.name.to_string()).collect::<Vec<_>>().join(", ");
        if !self.destroy_all_models {
            return Err(Failure::new(format!("controller {} has models: {names}", self.name))
                .with_hint("--destroy-all-models destroys them, too"));
        }
        let force = self.force.then(|| match self.model_timeout {
            _ if self.no_wait => Force { max_wait: 0 },
            Some(wait) => wait_of(wait),
            None => Force::default(),
        });
        let storage = self.storage.end();
        let destroy =
            |model: &ModelSummary| ControllerCommand::DestroyModel { model: model.uuid, force, storage };
        let commands = models.iter().map(destroy).collect();
        for result in client.controller_commands(commands).await?.results {
            match std::result::Result::<Answer, Refusal>::from(result) {
                // It has gone since the list was made.
                Err(refusal) if refusal.code == ErrorCode::NotFound => {}
                result => drop(result?),
            }
        }
        context.say(format_args!("Destroying models: {names}"));
        let forcing = format!("periapt destroy-controller {} --destroy-all-models --force", self.name);
        let give_up_after = self.give_up.give_up_after;
        Destroyed { client, model: None, force, forcing, give_up_after }.gone(context).await
    }
}

impl Verb for KillController {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(Some(&self.name))?;
        if controller.entry.local.is_none() {
            return Err(Failure::new(format!(
                "controller {} was not bootstrapped on this machine",
                self.name
            ))
            .with_hint(format!("`periapt destroy-controller {}` forgets it", self.name)));
        }
        self.prompt.confirm(&format!(
            "This command will kill the controller \"{}\" and delete its data; its units run no more hooks.",
            self.name
        ))?;
        remove(context, &controller).await
    }
}

/// Ends the controller's processes, deletes its data, and removes it from the client's file.
async fn remove(context: &Context, controller: &Controller) -> Result<()> {
    let name = &controller.name;
    if let Some(processes) = &controller.entry.local {
        for killed in local::end(processes).await? {
            context.say(format_args!("The {killed} did not end by itself, and was killed"));
        }
        let directory = context.data.controller(name);
        match fs::remove_dir_all(directory.path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
        .explain(|| format!("cannot remove {}", directory.path().display()))?;
    }
    ClientData::update(&context.data, |data| {
        data.controllers.remove(name);
        if data.current_controller.as_ref() == Some(name) {
            data.current_controller = None;
        }
        Ok(())
    })?;
    LastSeen::forget(&context.data, name);
    context.say(format_args!("Controller \"{name}\" is destroyed"));
    Ok(())
}
