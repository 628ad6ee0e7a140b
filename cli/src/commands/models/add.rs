//! `add-model`

use clap::Args;
use periapt_host_api::{
    CredentialName, ModelName,
    command::{Answer, ControllerCommand},
};

use crate::{
    commands::Verb,
    context::{Context, ControllerArg},
    data::CurrentModel,
    error::{Explain as _, Failure, Result},
    parse::{cloud::HERE, credential, settings},
};

/// Make a model, and make it the current one
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt add-model blog\n  periapt add-model blog --config hook-timeout=1m"
)]
pub(crate) struct AddModel {
    /// Its name: lower-case letters, digits and inner dashes
    name: ModelName,
    /// The cloud: the built-in one, the only one with agents
    #[arg(value_name = "CLOUD")]
    cloud: Option<String>,
    /// A setting KEY=VALUE of the model's configuration, or a YAML file of settings; may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    config: Vec<String>,
    /// A credential stored for that cloud; without effect
    #[arg(long, value_name = "NAME")]
    credential: Option<CredentialName>,
    /// Keep the current model selected
    #[arg(long)]
    no_switch: bool,
    #[command(flatten)]
    controller: ControllerArg,
}

impl Verb for AddModel {
    async fn run(self, context: &Context) -> Result<()> {
        if let Some(cloud) = &self.cloud {
            here(cloud)?;
        }
        let controller = context.controller(self.controller.controller.as_ref())?;
        if let Some(name) = &self.credential {
            credential::require_for_model(context, &controller, self.cloud.as_deref(), name).await?;
        }
        let config = settings::from_options(&self.config, None)?;
        let kept: Vec<_> = config.keys().cloned().collect();
        let command = ControllerCommand::AddModel { name: self.name.clone(), config };
        let answer = controller.client.controller_command(command).await?;
        settings::tell_of_kept(context, &kept);
        if !self.no_switch {
            let added = CurrentModel::new(controller.user.clone(), self.name.clone());
            let selected = controller.select(&context.data, Some(added));
            selected.explain(|| format!("model {} was added, but cannot be selected", self.name))?;
        }
        let uuid = match answer {
            Answer::Model { uuid } => format!(" ({uuid})"),
            _ => String::new(),
        };
        context
            .say(format_args!("Added model \"{}\"{uuid} on controller \"{}\"", self.name, controller.name));
        Ok(())
    }
}

/// Refuses a cloud without agents: any but the built-in one, and this machine.
fn here(cloud: &str) -> Result<()> {
    let name = cloud.split('/').next().unwrap_or(cloud);
    match HERE.contains(&name) {
        true => Ok(()),
        false => Err(Failure::new(format!("cannot add a model to cloud \"{cloud}\""))
            .with_hint("units run on agents, and stored clouds have no effect: leave the cloud out")),
    }
}
