//! `users` and `show-user`: a controller has one user yet.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::UserName;
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ControllerArg, ModelRef},
    error::{Failure, Result},
    output::{OutputArgs, Table, Text},
    print::identity::{NOT_RECORDED, USER},
};

/// List a controller's users, or those of a model
#[derive(Debug, Args)]
#[command(visible_alias = "list-users")]
#[command(after_help = "Examples:\n  periapt users\n  periapt users blog --format yaml")]
pub(crate) struct Users {
    /// A model: only those who may use it
    #[arg(value_name = "[USER/]MODEL")]
    model: Option<ModelRef>,
    /// Accepted for compatibility with Juju; no user is ever disabled
    #[arg(long, hide = true)]
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

/// A user as Juju prints it. The times of creation and last login are not recorded.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownUser {
    user_name: &'static str,
    display_name: &'static str,
    access: &'static str,
    date_created: &'static str,
    last_connection: &'static str,
}

/// A user of a model, as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct OfModel {
    display_name: &'static str,
    access: &'static str,
    last_connection: &'static str,
}

const ADMIN: ShownUser = ShownUser {
    user_name: USER,
    display_name: USER,
    access: "superuser",
    date_created: NOT_RECORDED,
    last_connection: NOT_RECORDED,
};

impl Verb for Users {
    async fn run(self, context: &Context) -> Result<()> {
        let named = self.model.as_ref().and_then(|model| model.controller.as_ref());
        let controller = context.controller(named.or(self.controller.controller.as_ref()))?;
        let Some(model) = &self.model else {
            return self.output.print(context.color, &[ADMIN], |_| {
                let heading = ["Name", "Display name", "Access", "Date created", "Last connection"];
                let mut table = Table::new(heading);
                table.row([
                    format!("{USER}*").into(),
                    ADMIN.display_name.into(),
                    ADMIN.access.into(),
                    ADMIN.date_created.into(),
                    ADMIN.last_connection.into(),
                ]);
                Text::joined([format!("Controller: {}", controller.name).into(), table.render()], "\n\n")
            });
        };
        // Only an existing model has users.
        controller.client.model(&model.model).await?;
        let user = OfModel { display_name: USER, access: USER, last_connection: NOT_RECORDED };
        self.output.print(context.color, &BTreeMap::from([(USER, user)]), |users| {
            let mut table = Table::new(["Name", "Display name", "Access", "Last connection"]);
            for (name, user) in users {
                table.row([
                    format!("{name}*").into(),
                    user.display_name.into(),
                    user.access.into(),
                    user.last_connection.into(),
                ]);
            }
            table.render()
        })
    }
}

impl Verb for ShowUser {
    async fn run(self, context: &Context) -> Result<()> {
        context.controller(self.controller.controller.as_ref())?;
        match &self.name {
            Some(name) if name.as_str() != USER => Err(Failure::new(format!("user {name} not found"))
                .with_hint("a controller knows one user yet, admin, who is whoever reaches its address")),
            _ => self.output.or_yaml().print(context.color, &ADMIN, |_| String::new()),
        }
    }
}
