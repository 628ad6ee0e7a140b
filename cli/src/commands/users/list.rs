//! `users` and `show-user`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    Timestamp, UserName,
    user::{ModelUser, UserDetails},
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ControllerArg, ModelRef},
    error::Result,
    output::{OutputArgs, Table, Text, to_the_second},
    print::identity::NEVER_CONNECTED,
};

/// List a controller's users, or those of a model
///
/// Superusers see all users, others themselves; the same holds for the users of a model and its administrators.
#[derive(Debug, Args)]
#[command(visible_alias = "list-users")]
#[command(after_help = "Examples:\n  periapt users\n  periapt users blog --format yaml")]
pub(crate) struct Users {
    /// A model: only those who may use it
    #[arg(value_name = "[USER/]MODEL")]
    model: Option<ModelRef>,
    /// Include users who are disabled
    #[arg(long)]
    all: bool,
    /// Accepted for compatibility with Juju; times are always exact
    #[arg(long, hide = true)]
    exact_time: bool,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// Show details of a user
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt show-user")]
pub(crate) struct ShowUser {
    /// The user; by default the one that sends the command
    name: Option<UserName>,
    /// Accepted for compatibility with Juju; times are always exact
    #[arg(long, hide = true)]
    exact_time: bool,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// A user as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownUser {
    user_name: String,
    display_name: String,
    access: String,
    date_created: String,
    last_connection: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    disabled: bool,
}

impl From<UserDetails> for ShownUser {
    fn from(user: UserDetails) -> Self {
        Self {
            user_name: user.name.to_string(),
            display_name: user.display_name,
            access: user.access.map(|access| access.to_string()).unwrap_or_default(),
            date_created: to_the_second(user.created_at),
            last_connection: connected(user.last_login),
            disabled: user.disabled,
        }
    }
}

/// A user of a model, as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct OfModel {
    display_name: String,
    access: String,
    last_connection: String,
}

impl From<ModelUser> for OfModel {
    fn from(user: ModelUser) -> Self {
        Self {
            display_name: user.display_name,
            access: user.access.to_string(),
            last_connection: connected(user.last_login),
        }
    }
}

fn connected(last: Option<Timestamp>) -> String {
    last.map_or_else(|| NEVER_CONNECTED.to_owned(), to_the_second)
}

impl Verb for Users {
    async fn run(self, context: &Context) -> Result<()> {
        let named = self.model.as_ref().and_then(|model| model.controller.as_ref());
        let controller = context.controller(named.or(self.controller.controller.as_ref()))?;
        let marked = |name: &str| {
            let own = if controller.user.as_str() == name { "*" } else { "" };
            format!("{name}{own}")
        };
        let Some(model) = &self.model else {
            let mut users = controller.client.users().await?;
            users.retain(|user| self.all || !user.disabled);
            let shown: Vec<ShownUser> = users.into_iter().map(ShownUser::from).collect();
            return self.output.print(context.color, &shown, |shown| {
                let heading = ["Name", "Display name", "Access", "Date created", "Last connection"];
                let mut table = Table::new(heading);
                for user in shown {
                    let connection = match user.disabled {
                        true => format!("{} (disabled)", user.last_connection),
                        false => user.last_connection.clone(),
                    };
                    table.row([
                        marked(&user.user_name).into(),
                        user.display_name.as_str().into(),
                        user.access.as_str().into(),
                        user.date_created.as_str().into(),
                        connection.into(),
                    ]);
                }
                Text::joined([format!("Controller: {}", controller.name).into(), table.render()], "\n\n")
            });
        };
        let users = controller.client.model_users(&model.model).await?;
        let users: BTreeMap<String, OfModel> =
            users.into_iter().map(|user| (user.name.to_string(), user.into())).collect();
        self.output.print(context.color, &users, |users| {
            let mut table = Table::new(["Name", "Display name", "Access", "Last connection"]);
            for (name, user) in users {
                table.row([
                    marked(name).into(),
                    user.display_name.as_str().into(),
                    user.access.as_str().into(),
                    user.last_connection.as_str().into(),
                ]);
            }
            table.render()
        })
    }
}

impl Verb for ShowUser {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let user = match &self.name {
            Some(name) => controller.client.user(name).await?,
            None => controller.client.whoami().await?,
        };
        self.output.or_yaml().print(context.color, &ShownUser::from(user), |_| String::new())
    }
}
