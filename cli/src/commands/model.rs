//! `add-model`, `models`, `destroy-model`.

mod listed;

use std::time::Duration;

use clap::Args;
use periapt_client::{Client, ClientError};
use periapt_host_api::{
    CredentialName, ErrorCode, ModelName, ModelUuid, UserName,
    api::ModelSelector,
    command::{Answer, ControllerCommand, ModelSummary},
};
use tokio::time::{Instant, sleep};

use self::listed::{Listing, Uuids};
use super::{
    clouds, credentials,
    removal::{ForceArgs, StorageEndArgs},
    settings,
};
use crate::{
    context::{Context, ControllerArg, ModelArg, ModelRef},
    duration,
    error::{Explain as _, Failure, Result},
    output::OutputArgs,
    prompt::PromptArg,
};

/// The longest time that a command waits until models are removed, in addition to the time-outs of single steps.
pub(crate) const GIVES_UP_AFTER: Duration = Duration::from_secs(600);

/// Make a model, and make it the current one
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt add-model blog\n  periapt add-model blog --config hook-timeout=1m"
)]
pub(crate) struct AddModel {
    /// Its name: lower-case letters, digits and inner dashes
    name: ModelName,
    /// The cloud that it is in: the one that there is, whatever others are kept
    #[arg(value_name = "CLOUD")]
    cloud: Option<String>,
    /// A setting KEY=VALUE of the model's configuration, or a YAML file of settings; may be repeated
    #[arg(long, value_name = "KEY=VALUE|FILE")]
    config: Vec<String>,
    /// A credential that is kept for that cloud; of no effect, as it is for all models
    #[arg(long, value_name = "NAME")]
    credential: Option<CredentialName>,
    /// Stay with the model that is the current one now
    #[arg(long)]
    no_switch: bool,
    #[command(flatten)]
    controller: ControllerArg,
}

/// List a controller's models
#[derive(Debug, Args)]
pub(crate) struct Models {
    /// Show their UUIDs, too
    #[arg(long)]
    uuid: bool,
    /// Only models of this user
    #[arg(long)]
    user: Option<UserName>,
    /// Taken for Juju's sake: all models are listed
    #[arg(long, hide = true)]
    all: bool,
    /// Taken for Juju's sake: times are exact
    #[arg(long, hide = true)]
    exact_time: bool,
    #[command(flatten)]
    controller: ControllerArg,
    #[command(flatten)]
    output: OutputArgs,
}

/// Destroy a model with all that is in it
///
/// Units run their stop and remove hooks. The command returns when the model is gone, and gives up waiting after ten
/// minutes; the model goes on winding up.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt destroy-model blog --no-prompt")]
pub(crate) struct DestroyModel {
    /// The model
    #[arg(value_name = "[CONTROLLER:]MODEL")]
    model: ModelRef,
    #[command(flatten)]
    force: ForceArgs,
    /// With --force: how long each step may take, as --max-wait says it
    #[arg(short, long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    #[command(flatten)]
    storage: StorageEndArgs,
    #[command(flatten)]
    prompt: PromptArg,
}

impl AddModel {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        if let Some(cloud) = &self.cloud {
            here(cloud)?;
        }
        let controller = context.controller(self.controller.controller.as_ref())?;
        if let Some(name) = &self.credential {
            credentials::require_for_model(context, &controller, self.cloud.as_deref(), name).await?;
        }
        let config = settings::from_options(&self.config, None)?;
        let kept: Vec<_> = config.keys().cloned().collect();
        let command = ControllerCommand::AddModel { name: self.name.clone(), config };
        let answer = controller.client.controller_command(command).await?;
        settings::tell_of_kept(context, &kept);
        if !self.no_switch {
            let selected = controller.select(&context.data, Some(self.name.clone()));
            selected
                .explain(|| format!("model {} was added, and cannot be made the current one", self.name))?;
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

/// Refuses a cloud in which there are no agents: all but the one that there is, and this machine.
fn here(cloud: &str) -> Result<()> {
    let name = cloud.split('/').next().unwrap_or(cloud);
    match clouds::HERE.contains(&name) {
        true => Ok(()),
        false => Err(Failure::new(format!("no model can be in cloud \"{cloud}\""))
            .with_hint("units run on agents, whatever clouds are kept: leave it out")),
    }
}

/// A controller's models, in order of their names.
pub(crate) async fn by_name(client: &Client) -> Result<Vec<ModelSummary>> {
    let mut models = client.models().await?;
    models.sort_by(|one, other| (&one.name, &one.owner).cmp(&(&other.name, &other.owner)));
    Ok(models)
}

impl Models {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        let mut models = by_name(&controller.client).await?;
        models.retain(|model| self.user.as_ref().is_none_or(|user| model.owner == *user));
        if models.is_empty() {
            context.say("no models yet: `periapt add-model NAME` makes one");
        }
        let info = controller.client.controller().await?;
        let listing = Listing::of(models, &controller, &info);
        let uuids = if self.uuid { Uuids::Shown } else { Uuids::LeftOut };
        self.output.print(context.color, &listing, |listing| listing.table(uuids))
    }
}

impl DestroyModel {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let force = self.force.within(self.timeout);
        if self.timeout.is_some() && force.is_none() {
            return Err(Failure::misused(
                "--timeout can only be used with --force: without it no step is cut short",
            ));
        }
        let named = ModelArg { model: Some(self.model) };
        let model = context.model(&named)?;
        let client = model.client();
        let summary = client.model(&model.selector).await?;
        let (name, uuid) = (&summary.name, summary.uuid);
        self.prompt.confirm(&format!(
            "This command will destroy the model \"{name}\" with its {} application(s), {} unit(s) and {} \
             machine(s).",
            summary.applications, summary.units, summary.machines
        ))?;
        client
            .controller_command(ControllerCommand::DestroyModel {
                model: uuid,
                force,
                storage: self.storage.end(),
            })
            .await?;
        // Commands must not go to a model that is on its way out.
        if model.controller.entry.current_model.as_ref() == Some(name) {
            model.controller.select(&context.data, None)?;
        }
        let patience = GIVES_UP_AFTER + Duration::from_secs(force.map_or(0, |force| force.max_wait.into()));
        gone(client, Some(uuid), Instant::now() + patience).await?;
        context.say(format_args!("Model \"{name}\" is destroyed"));
        Ok(())
    }
}

/// Waits until one model, or all of a controller's, are gone. A stream of all models' lives does not exist.
pub(crate) async fn gone(client: &Client, model: Option<ModelUuid>, deadline: Instant) -> Result<()> {
    let mut pause = Duration::from_millis(20);
    loop {
        let left = match model {
            None => client.models().await?,
            Some(uuid) => match client.model(&ModelSelector::Uuid(uuid)).await {
                Ok(summary) => vec![summary],
                Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Vec::new(),
                Err(error) => return Err(error.into()),
            },
        };
        let Some(first) = left.first() else { return Ok(()) };
        if Instant::now() + pause > deadline {
            let waits = waits_for(client, first.uuid).await;
            return Err(Failure::new(format!(
                "model {} is not gone yet: {} unit(s), {} application(s) left{waits}",
                first.name, first.units, first.applications
            ))
            .with_hint("it goes on winding up; --force does not wait for units for ever"));
        }
        sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(500));
    }
}

/// What the first things that wait are waiting for.
async fn waits_for(client: &Client, model: ModelUuid) -> String {
    let Ok(status) = client.status(&ModelSelector::Uuid(model)).await else { return String::new() };
    let mut reasons = Vec::new();
    for (name, application) in &status.applications {
        reasons.extend(application.waits_for.iter().map(|reason| format!("{name}: {reason}")));
        for (name, unit) in &application.units {
            reasons.extend(unit.waits_for.iter().map(|reason| format!("{name}: {reason}")));
        }
    }
    reasons.truncate(5);
    reasons.iter().map(|reason| format!("\n  {reason}")).collect()
}
