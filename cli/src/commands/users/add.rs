//! `add-user`

use clap::Args;
use periapt_host_api::{UserName, user::NewUser};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Failure, Result},
    output::Sink,
    parse::registration::Registration,
};

/// Add a user to a controller
///
/// The user registers with the printed text, which holds the controller's address and a token that can be used once,
/// within 7 days. Its holder becomes the user.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt add-user jane\n  periapt add-user jane Jane")]
pub(crate) struct AddUser {
    /// The user's name
    #[arg(value_name = "USER")]
    name: UserName,
    /// The user's name for people
    display_name: Option<String>,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for AddUser {
    async fn run(self, context: &Context) -> Result<()> {
        if self.name.is_external() {
            return Err(Failure::new(format!("user \"{}\" is not added, but granted access", self.name))
                .with_hint(format!(
                    "`periapt grant {} login` lets the user log in at the issuer",
                    self.name
                )));
        }
        let controller = context.controller(self.controller.controller.as_ref())?;
        let display_name = self.display_name.unwrap_or_default();
        let issued = controller.client.add_user(&NewUser { name: self.name, display_name }).await?;
        let text = Registration::of(&controller, &issued).to_text();
        let name = issued.user;
        let text = format!(
            "User \"{name}\" added\nPlease send this command to {name}:\n    periapt register {text}\n\n\
             \"{name}\" has not been granted access to any models. You can use \"periapt grant\" to grant access.\n"
        );
        Sink::new(None, context.color)?.write(text)
    }
}
