//! `add-model`, `models`, `destroy-model`.

use std::{collections::BTreeMap, time::Duration};

use clap::Args;
use periapt_client::{Client, ClientError};
use periapt_host_api::{
    CredentialName, ErrorCode, ModelName, ModelUuid, UserName,
    api::ModelSelector,
    command::{Answer, ControllerCommand, Force, ModelSummary},
};
use tokio::time::{Instant, sleep};

use super::listed::{Listing, Uuids};
use crate::{
    commands::compat::{clouds, credentials},
    context::{Context, ControllerArg, ModelArg, ModelRef},
    error::{Explain as _, Failure, Result},
    output::OutputArgs,
    parse::duration,
    parse::{
        removal::{ForceArgs, StorageEndArgs},
        settings,
    },
    print::removal::{Waiting, WayOn, still_there},
    prompt::PromptArg,
};

/// The longest time that a command waits until models are removed, in addition to the time-outs of single steps.
const GIVES_UP_AFTER: Duration = Duration::from_secs(600);

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
/// Units run their stop and remove hooks. The command returns when the model is gone, tells meanwhile what it waits for,
/// and gives up waiting after ten minutes; the model goes on winding up.
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
        let forcing = format!("periapt destroy-model {name} --force");
        Goers { client, model: Some(uuid), force, forcing }.gone(context).await?;
        context.say(format_args!("Model \"{name}\" is destroyed"));
        Ok(())
    }
}

/// Time before the command says what a removal waits for. Most removals end sooner, and need no message.
const SILENT: Duration = Duration::from_millis(500);

/// Models that are destroyed, as a command waits for them.
pub(crate) struct Goers<'a> {
    pub(crate) client: &'a Client,
    /// One of them; none: all of the controller's.
    pub(crate) model: Option<ModelUuid>,
    /// Removes by force what takes too long; none: waits.
    pub(crate) force: Option<Force>,
    /// The command that would do so.
    pub(crate) forcing: String,
}

impl Goers<'_> {
    /// Waits until they are gone, and tells what that waits for. A stream of all models' lives does not exist.
    pub(crate) async fn gone(&self, context: &Context) -> Result<()> {
        let began = Instant::now();
        let longest = Duration::from_secs(self.force.map_or(0, |force| force.max_wait.into()));
        let deadline = began + GIVES_UP_AFTER + longest;
        let mut told = BTreeMap::new();
        let mut pause = Duration::from_millis(20);
        loop {
            let left = self.left().await?;
            let Some(first) = left.first() else { return Ok(()) };
            if Instant::now() + pause > deadline {
                let selector = ModelSelector::Uuid(first.uuid);
                let waits = self.client.status(&selector).await.map(|status| still_there(&status));
                return Err(Failure::new(format!(
                    "model {} is not gone yet: {} unit(s), {} application(s) left{}",
                    first.name,
                    first.units,
                    first.applications,
                    waits.unwrap_or_default()
                ))
                .with_hint(format!(
                    "it goes on winding up; `periapt resolved -m {} UNIT` runs a failed hook again; `{}` does not wait \
                     for units for ever",
                    first.name, self.forcing
                )));
            }
            if began.elapsed() > SILENT {
                for model in &left {
                    let told = told.entry(model.uuid).or_insert_with(|| Waiting::new(model.name.as_str()));
                    self.tell(context, model, told).await;
                }
            }
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    async fn left(&self) -> Result<Vec<ModelSummary>> {
        match self.model {
            None => by_name(self.client).await,
            Some(uuid) => match self.client.model(&ModelSelector::Uuid(uuid)).await {
                Ok(summary) => Ok(vec![summary]),
                Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            },
        }
    }

    async fn tell(&self, context: &Context, model: &ModelSummary, told: &mut Waiting) {
        // It may be gone meanwhile, and what else is wrong the next look finds.
        let Ok(status) = self.client.status(&ModelSelector::Uuid(model.uuid)).await else { return };
        let way_on = if self.force.is_some() { WayOn::Forced } else { WayOn::Force(&self.forcing) };
        told.tell(context, &status, way_on);
    }
}
