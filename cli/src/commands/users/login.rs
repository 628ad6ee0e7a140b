//! `login`

use clap::Args;
use periapt_client::Identity;
use periapt_host_api::{
    UserName,
    user::{IssuedSession, PasswordLogin},
};

use super::{approval::approved, welcome::welcome};
use crate::{
    commands::Verb,
    context::{Context, Controller, ControllerArg, client_as},
    data::{Accounts, ClientData},
    error::{Failure, Result},
    secret_input::PasswordArg,
};

/// Log in to a controller
///
/// The session lasts 30 days. The client keeps its token in accounts.json, which only its owner may read. A user
/// NAME@DOMAIN logs in at the controller's issuer: the command prints an address to visit in any browser and a code to
/// enter there, and waits.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt login -u jane\n  periapt login -c shop -u ci\n  periapt login -u jane@example.com"
)]
pub(crate) struct Login {
    /// The user; by default the one who logged in last, or else the one who approves at the issuer
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
        let name = &controller.name;
        let last = || Accounts::of(&context.data, name).map(|account| account.map(|account| account.user));
        let user = match &self.user {
            Some(user) => Some(user.clone()),
            None => last()?,
        };
        let issued = match user {
            Some(user) if !user.is_external() => self.by_password(context, &controller, user).await?,
            wanted => at_issuer(context, &controller, wanted).await?,
        };
        let session = context.client_as(name, &controller.entry, Identity::Token(issued.token.clone()))?;
        ClientData::update(&context.data, |data| {
            data.current_controller = Some(name.clone());
            Ok(())
        })?;
        welcome(context, name, &session, issued).await
    }
}

impl Login {
    async fn by_password(
        &self,
        context: &Context,
        controller: &Controller,
        user: UserName,
    ) -> Result<IssuedSession> {
        let name = &controller.name;
        let password = self.password.existing(&format!("please enter password for {user} on {name}: "))?;
        let client = client_as(&context.data, name, &controller.entry, Identity::Local)?;
        let issued = client.log_in(&PasswordLogin { user: user.clone(), password }).await;
        issued.map_err(|error| {
            let hint = format!(
                "a user without a password registers once, with the text of `periapt change-user-password \
                 {user} --reset`; on the controller's own host its client needs no login for that"
            );
            prefixed(controller, error.into()).with_hint(hint)
        })
    }
}

/// Logs in at the controller's issuer.
async fn at_issuer(
    context: &Context,
    controller: &Controller,
    wanted: Option<UserName>,
) -> Result<IssuedSession> {
    let place = (&controller.name, &controller.entry);
    approved(context, place, wanted.as_ref()).await.map_err(|failure| prefixed(controller, failure))
}

/// Adds the controller to the message of a failure.
fn prefixed(controller: &Controller, failure: Failure) -> Failure {
    match failure {
        Failure::Failed { message, hint } => {
            let message = format!("cannot log into controller \"{}\": {message}", controller.name);
            Failure::Failed { message, hint }
        }
        other => other,
    }
}
