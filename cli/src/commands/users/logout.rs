//! `logout`

use clap::Args;

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    data::Accounts,
    error::{Failure, Result},
    output::note,
};

/// Log out of a controller
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt logout")]
pub(crate) struct Logout {
    /// Accepted for compatibility with Juju; a login can be repeated
    #[arg(long, hide = true)]
    force: bool,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for Logout {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        if Accounts::of(&context.data, &controller.name)?.is_none() {
            context.say("You are not logged in.");
            return Ok(());
        }
        // A session that has ended already is forgotten all the same.
        if let Err(error) = controller.client.log_out().await {
            note(format_args!("WARNING the controller did not end the session: {}", Failure::from(error)));
        }
        Accounts::forget(&context.data, &controller.name)?;
        context.say(match Accounts::count(&context.data)? {
            0 => "Logged out. You are no longer logged into any controllers.".to_owned(),
            1 => "Logged out. You are still logged into 1 controller.".to_owned(),
            count => format!("Logged out. You are still logged into {count} controllers."),
        });
        Ok(())
    }
}
