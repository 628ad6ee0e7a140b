//! The login of an external user, who approves it in a browser at the controller's issuer.

use periapt_client::{Client, ClientError, Identity};
use periapt_host_api::{
    ErrorCode, UserName,
    user::{AwaitLogin, BegunLogin, IssuedSession, LoginResult},
};

use crate::{
    context::{Context, client_as},
    data::{ControllerEntry, ControllerName},
    error::{Failure, Result},
    output::note,
};

/// Begins a login, tells the user where to approve it, and waits for the session. Refuses that of another user than the
/// wanted one.
pub(super) async fn approved(
    context: &Context,
    (name, entry): (&ControllerName, &ControllerEntry),
    wanted: Option<&UserName>,
) -> Result<IssuedSession> {
    // The controller closes a stranger's connection after 30 s, so each question has its own.
    let connect = || -> Result<Client> { client_as(&context.data, name, entry, Identity::Local) };
    let begun = connect()?.begin_login().await.map_err(|error| unavailable(error, wanted))?;
    let BegunLogin { token, verification_uri, user_code, .. } = begun;
    note(format_args!("Please visit {verification_uri} and enter code {user_code} to log in."));
    let question = AwaitLogin { token };
    let issued = loop {
        match connect()?.await_login(&question).await? {
            LoginResult::Pending => {}
            LoginResult::LoggedIn(issued) => break issued,
        }
    };
    match wanted {
        Some(wanted) if *wanted != issued.user => {
            let opened = client_as(&context.data, name, entry, Identity::Token(issued.token))?;
            opened.log_out().await?;
            Err(Failure::new(format!(
                "user \"{}\" has approved the login, and not \"{wanted}\"",
                issued.user
            )))
        }
        _ => Ok(issued),
    }
}

/// Returns the failure of the begin of a login. Without an issuer a user is to be named, who has a password.
fn unavailable(error: ClientError, wanted: Option<&UserName>) -> Failure {
    match error.refusal().map(|refusal| refusal.code) {
        Some(ErrorCode::NotSupported) if wanted.is_none() => {
            Failure::new("no user name given").with_hint("name one: `periapt login -u USER`")
        }
        _ => error.into(),
    }
}
