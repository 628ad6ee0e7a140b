//! The greeting after a login, and the keeping of the session.

use periapt_client::Client;
use periapt_host_api::user::IssuedSession;

use crate::{
    context::{Context, remember},
    data::{Account, Accounts, ControllerName},
    error::Result,
};

/// Keeps a session in the client's file of logins, and greets the user.
pub(super) async fn welcome(
    context: &Context,
    controller: &ControllerName,
    client: &Client,
    issued: IssuedSession,
) -> Result<()> {
    let IssuedSession { user, token, expires_at, .. } = issued;
    Accounts::keep(&context.data, controller, Account { user: user.clone(), token, expires_at })?;
    let info = client.controller().await?;
    remember(&context.data, controller, client, &info).await?;
    context.say(format!("Welcome, {user}. You are now logged into \"{controller}\"."));
    let models = client.models().await?;
    context.say(match models.as_slice() {
        [] => "\nThere are no models available. You can ask an administrator to grant you access with \
               \"periapt grant\"."
            .to_owned(),
        [only] => format!("\nThere is 1 model available: {}/{}.", only.owner, only.name),
        some => format!(
            "\nThere are {} models available. Use \"periapt switch\" to select one of them.",
            some.len()
        ),
    });
    Ok(())
}
