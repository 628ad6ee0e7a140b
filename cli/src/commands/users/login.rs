//! `login`

use clap::Args;
use periapt_client::Identity;
use periapt_host_api::{UserName, user::PasswordLogin};

use super::welcome::welcome;
use crate::{
    commands::Verb,
    context::{Context, ControllerArg, client_as},
    data::{Accounts, ClientData},
    error::{Failure, Result},
    secret_input::PasswordArg,
};

/// Log in to a controller
///
/// The session lasts 30 days. The client keeps its token in accounts.json, which only its owner may read.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt login -u jane\n  periapt login -c shop -u ci")]
pub(crate) struct Login {
    /// The user; by default the one who logged in last
    #[arg(short, long, value_name = "USER")]
    user: Option<UserName>,
    #[command(flatten)]
    password: PasswordArg,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for Login {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let name = controller.name;
        let last = || Accounts::of(&context.data, &name).map(|account| account.map(|account| account.user));
        let user = match self.user {
            Some(user) => user,
            None => last()?.ok_or_else(|| {
                Failure::new("no user name given").with_hint("name one: `periapt login -u USER`")
            })?,
        };
        let password = self.password.existing(&format!("please enter password for {user} on {name}: "))?;
        let client = client_as(&context.data, &name, &controller.entry, Identity::Local)?;
        let issued = client.log_in(&PasswordLogin { user: user.clone(), password }).await;
        let issued = issued.map_err(|error| {
            let failure = Failure::from(error);
            match failure {
                Failure::Failed { message, .. } => Failure::Failed {
                    message: format!("cannot log into controller \"{name}\": {message}"),
                    hint: Some(format!(
                        "a user without a password registers once, with the text of `periapt change-user-password \
                         {user} --reset`; on the controller's own host its client needs no login for that"
                    )),
                },
                other => other,
            }
        })?;
        let session =
            client_as(&context.data, &name, &controller.entry, Identity::Token(issued.token.clone()))?;
        ClientData::update(&context.data, |data| {
            data.current_controller = Some(name.clone());
            Ok(())
        })?;
        welcome(context, &name, &session, issued).await
    }
}
