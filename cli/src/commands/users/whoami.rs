//! `whoami`: the controller, model and user of commands.

use clap::Args;
use serde::Serialize;

use crate::{commands::Verb, context::Context, error::Result, output::OutputArgs};

/// Show the current controller, model and user
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt whoami")]
pub(crate) struct Whoami {
    #[command(flatten)]
    output: OutputArgs,
}

/// The login as Juju prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownLogin {
    controller: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    user: String,
}

impl Verb for Whoami {
    async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(None)?;
        let model = controller.entry.current_model.map(|model| model.shown_to(&controller.user));
        let shown =
            ShownLogin { controller: controller.name.to_string(), model, user: controller.user.to_string() };
        self.output.print(context.color, &shown, |shown| {
            let model = shown.model.as_deref().unwrap_or("<no-current-model>");
            format!("Controller:  {}\nModel:       {model}\nUser:        {}\n", shown.controller, shown.user)
        })
    }
}
