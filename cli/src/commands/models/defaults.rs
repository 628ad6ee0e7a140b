//! `model-defaults`: the settings of all models of a controller.

use clap::Args;
use periapt_host_api::{
    api::{ModelDefault, ModelDefaults as Defaults},
    command::ControllerCommand,
};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    error::{Failure, Result},
    output::{OutputArgs, Table, Text},
    parse::settings,
};

/// Show or change default settings of a controller's models, present and future
///
/// A model's own settings (model-config) win over these, and an application's own settings over both.
#[derive(Debug, Args)]
#[command(visible_alias = "model-default")]
#[command(after_help = "\
Examples:
  periapt model-defaults
  periapt model-defaults hook-timeout
  periapt model-defaults hook-memory-limit=64M update-status-hook-interval=15m
  periapt model-defaults --reset hook-memory-limit")]
pub(crate) struct ModelDefaults {
    /// KEY to show one, KEY=VALUE to set some
    #[arg(value_name = "KEY[=VALUE]")]
    arguments: Vec<String>,
    /// Settings to reset to their defaults
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    reset: Vec<String>,
    #[command(flatten)]
    file: settings::FileArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for ModelDefaults {
    async fn run(self, context: &Context) -> Result<()> {
        let (pairs, keys) = settings::pairs_and_keys(&self.arguments)?;
        let mut set = self.file.read()?;
        set.extend(pairs);
        let given = !set.is_empty() || !self.reset.is_empty();
        let controller = context.controller(self.controller.controller.as_ref())?;
        if given {
            if !keys.is_empty() {
                return Err(Failure::new("showing and setting cannot be mixed in one call"));
            }
            let kept: Vec<_> = set.keys().cloned().collect();
            let command = ControllerCommand::SetModelDefaults { set, reset: self.reset };
            controller.client.controller_command(command).await?;
            settings::tell_of_kept(context, &kept);
            return Ok(());
        }
        let mut defaults = controller.client.model_defaults().await?;
        for key in &keys {
            if !defaults.0.contains_key(key) {
                let default = settings::default_of_kept(key)?;
                defaults.0.insert(key.clone(), ModelDefault { default, controller: None });
            }
        }
        if !keys.is_empty() {
            defaults.0.retain(|key, _| keys.contains(key));
        }
        self.output.print(context.color, &defaults, table)
    }
}

fn table(defaults: &Defaults) -> Text {
    let mut table = Table::new(["Attribute", "Default", "Controller"]);
    for (key, default) in &defaults.0 {
        let controller = default.controller.as_ref().map_or_else(|| "-".to_owned(), settings::plain);
        table.row([key.into(), settings::plain(&default.default).into(), controller.into()]);
    }
    table.render()
}
