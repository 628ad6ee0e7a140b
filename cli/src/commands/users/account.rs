//! `disable-user`, `enable-user` and `remove-user`

use clap::Args;
use periapt_host_api::{UserName, command::ControllerCommand};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::Result,
    prompt::PromptArg,
};

/// Disable a user: all sessions end, and no login succeeds
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt disable-user jane")]
pub(crate) struct DisableUser {
    /// The user
    #[arg(value_name = "USER")]
    name: UserName,
    #[command(flatten)]
    controller: ControllerArg,
}

/// Enable a user who was disabled
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt enable-user jane")]
pub(crate) struct EnableUser {
    /// The user
    #[arg(value_name = "USER")]
    name: UserName,
    #[command(flatten)]
    controller: ControllerArg,
}

/// Remove a user from a controller
///
/// The user's models stay. A later user of the same name inherits no access.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-user jane --no-prompt")]
pub(crate) struct RemoveUser {
    /// The user
    #[arg(value_name = "USER")]
    name: UserName,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for DisableUser {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let command = ControllerCommand::DisableUser { user: self.name.clone() };
        controller.client.controller_command(command).await?;
        context.say(format!("User \"{}\" disabled", self.name));
        Ok(())
    }
}

impl Verb for EnableUser {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let command = ControllerCommand::EnableUser { user: self.name.clone() };
        controller.client.controller_command(command).await?;
        context.say(format!("User \"{}\" enabled", self.name));
        Ok(())
    }
}

impl Verb for RemoveUser {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        self.prompt.confirm(&format!(
            "This command will permanently remove the user \"{}\" from the \"{}\" controller.",
            self.name, controller.name
        ))?;
        let command = ControllerCommand::RemoveUser { user: self.name.clone() };
        controller.client.controller_command(command).await?;
        context.say(format!("User \"{}\" removed", self.name));
        Ok(())
    }
}
