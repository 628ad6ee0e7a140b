//! `sessions` and `remove-session`

use clap::Args;
use periapt_host_api::{
    UserName,
    command::ControllerCommand,
    user::{SessionDetails, SessionId},
};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::Result,
    output::{OutputArgs, Table, to_the_second},
};

/// List a user's sessions and API tokens
#[derive(Debug, Args)]
#[command(visible_alias = "list-sessions")]
#[command(after_help = "Examples:\n  periapt sessions\n  periapt sessions jane --format json")]
pub(crate) struct Sessions {
    /// The user; by default the one that sends the command
    #[arg(value_name = "USER")]
    name: Option<UserName>,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// End a session, or revoke an API token
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt remove-session 0f3a9c1b2d4e5f60")]
pub(crate) struct RemoveSession {
    /// The session's id, as sessions shows it
    #[arg(value_name = "ID")]
    session: SessionId,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for Sessions {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let name = match self.name {
            Some(name) => name,
            None => controller.client.whoami().await?.name,
        };
        let sessions = controller.client.sessions(&name).await?;
        self.output.print(context.color, &sessions, |sessions| {
            let mut table = Table::new(["ID", "Kind", "From", "Created", "Ends"]);
            for session in sessions {
                let own = if session.current { "*" } else { "" };
                table.row([
                    format!("{}{own}", session.id).into(),
                    kind(session).into(),
                    session.address.as_str().into(),
                    to_the_second(session.created_at).into(),
                    to_the_second(session.expires_at).into(),
                ]);
            }
            table.render()
        })
    }
}

fn kind(session: &SessionDetails) -> String {
    match (&session.name, &session.scope) {
        (Some(name), Some(scope)) => format!("token {name} ({})", scope.access),
        _ => "login".to_owned(),
    }
}

impl Verb for RemoveSession {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let command = ControllerCommand::CloseSession { session: self.session.clone() };
        controller.client.controller_command(command).await?;
        context.say(format!("Session {} removed", self.session));
        Ok(())
    }
}
