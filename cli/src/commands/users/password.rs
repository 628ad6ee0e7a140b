//! `change-user-password`

use clap::Args;
use periapt_host_api::{UserName, user::NewPassword};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::Result,
    output::Sink,
    parse::registration::Registration,
    secret_input::PasswordArg,
};

/// Change the password of a user
///
/// The user's other sessions end, and all API tokens.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt change-user-password\n  periapt change-user-password jane --reset"
)]
pub(crate) struct ChangeUserPassword {
    /// The user; by default the one that sends the command
    #[arg(value_name = "USER")]
    name: Option<UserName>,
    /// Take the password away, and print a text to register with again
    #[arg(long, requires = "name")]
    reset: bool,
    #[command(flatten)]
    password: PasswordArg,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for ChangeUserPassword {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let own = controller.client.whoami().await?.name;
        let name = self.name.unwrap_or_else(|| own.clone());
        if self.reset {
            let issued = controller.client.reset_password(&name).await?;
            let text = Registration::of(&controller, &issued).to_text();
            let text = format!(
                "Password for \"{name}\" has been reset.\nAsk the user to run:\n    periapt register {text}\n"
            );
            return Sink::new(None, context.color)?.write(text);
        }
        let password = self.password.new_password()?;
        controller.client.set_password(&name, &NewPassword { password }).await?;
        context.say(match name == own {
            true => "Your password has been changed.".to_owned(),
            false => format!("Password for \"{name}\" has been changed."),
        });
        Ok(())
    }
}
