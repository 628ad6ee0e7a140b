//! `migrate`

use std::time::Duration;

use clap::Args;
use periapt_client::{Client, ClientError, Identity, Options, Trust};
use periapt_host_api::{
    ErrorCode, ModelUuid,
    agent::ControllerPlace,
    api::ModelSelector,
    command::ControllerCommand,
    migration::{ImportPlan, MigrationPhase, MigrationStatus, MigrationTarget},
    secret::Confidential,
};

use crate::{
    commands::Verb,
    context::{Context, Controller, ModelArg, ModelRef},
    data::ControllerName,
    error::{Failure, Result},
};

/// The pause between two looks at a migration.
const LOOK: Duration = Duration::from_millis(200);

/// Move a model to another controller, with its units going on
///
/// Its agents follow it. Meanwhile the model takes no commands, and hooks that end wait to be committed. The command returns
/// once the other controller has taken over. If it is interrupted, the migration goes on. Superusers of both controllers
/// may do it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt migrate blog prod                   # model blog of the current controller goes to controller prod
  periapt migrate blog prod --check           # only say whether it could
  periapt migrate blog --abort                # it stays
  periapt migrate blog --forget               # afterwards: tell nobody any more where it has gone")]
pub(crate) struct Migrate {
    /// The model
    #[arg(value_name = "[CONTROLLER:][USER/]MODEL")]
    model: ModelRef,
    /// The controller to which it goes, as `controllers` lists it
    #[arg(value_name = "TARGET-CONTROLLER", required_unless_present_any = ["abort", "forget"])]
    target: Option<ControllerName>,
    /// Check whether the model can migrate, and change nothing
    #[arg(long, conflicts_with_all = ["abort", "forget", "no_wait"])]
    check: bool,
    /// Return once the migration has begun
    #[arg(long, conflicts_with_all = ["abort", "forget"])]
    no_wait: bool,
    /// End a migration: the model stays
    #[arg(long, conflicts_with_all = ["target", "forget"])]
    abort: bool,
    /// Forget a model that has moved away: delete what is left of it here
    #[arg(long, conflicts_with = "target")]
    forget: bool,
    /// With --abort: take back a model that is handed over, if the other controller is lost for good. With --forget: do not
    /// wait for agents of the model that are still here
    #[arg(long, conflicts_with_all = ["target", "check", "no_wait"])]
    force: bool,
}

impl Verb for Migrate {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&ModelArg { model: Some(self.model.clone()) })?;
        let client = model.client();
        let known = match client.migration(&model.selector).await {
            Err(ClientError::Refused(refusal)) if self.abort && refusal.code == ErrorCode::NotFound => None,
            known => known?,
        };
        if self.abort || self.forget {
            let uuid = match (&known, &model.selector) {
                (Some(known), _) => known.model,
                // Also one that comes from another controller, which only this verb knows.
                (None, ModelSelector::Uuid(uuid)) => *uuid,
                (None, selector) => client.model(selector).await?.uuid,
            };
            let (command, done) = match self.abort {
                true => {
                    let command = ControllerCommand::AbortMigration { model: uuid, force: self.force };
                    let done = match &known {
                        Some(_) => "The migration is ended, and the model stays",
                        None => "The migration is ended, and what had come of the model is deleted here",
                    };
                    (command, done)
                }
                false => {
                    let command = ControllerCommand::ForgetMigration { model: uuid, force: self.force };
                    (command, "The model is forgotten here")
                }
            };
            client.controller_command(command).await?;
            context.say(done);
            return Ok(());
        }
        let Some(target) = &self.target else { return Err(Failure::misused("name the target controller")) };
        let target = context.controller(Some(target))?;
        // An earlier call was interrupted, or its session there has ended.
        let goes_on = known.filter(|known| is_under_way(known) && goes_to(known, &target) && !self.check);
        let uuid = match goes_on {
            Some(known) => known.model,
            None => {
                let plan = client.migration_plan(&model.selector).await?;
                check(&target, &plan).await?;
                if self.check {
                    context.say(format_args!("Model \"{}\" can migrate to {}", model.selector, target.name));
                    return Ok(());
                }
                client.model(&model.selector).await?.uuid
            }
        };
        begin(client, uuid, &target).await?;
        let selector = uuid.into();
        let begun = client.migration(&selector).await?;
        if let Some(begun) = &begun {
            context.say(format_args!("Migration started with ID \"{uuid}:{}\"", begun.id));
        }
        if self.no_wait {
            return Ok(());
        }
        wait(context, client, &selector, &target).await
    }
}

/// Returns true if a migration goes to a controller.
fn goes_to(known: &MigrationStatus, target: &Controller) -> bool {
    known.target.as_ref().is_some_and(|place| place.controller == target.entry.uuid)
}

/// Returns true if a migration has neither succeeded nor failed.
fn is_under_way(known: &MigrationStatus) -> bool {
    matches!(known.phase, MigrationPhase::Exporting | MigrationPhase::HandedOver)
}

/// Begins a migration with a session at the other controller, or lets one that has begun go on with it.
async fn begin(client: &Client, model: ModelUuid, target: &Controller) -> Result<()> {
    let place = place(target).await?;
    let token = target.client.open_session().await?.token;
    let options = Options::new(place.addresses.join(","), Identity::Token(token.clone()))
        .with_trust(Trust::Authority(place.authority.clone()));
    let to = Box::new(MigrationTarget { place, token: Confidential::Open(token) });
    let begun = client.controller_command(ControllerCommand::Migrate { model, target: to }).await;
    if begun.as_ref().is_err_and(|error| error.refusal().is_some()) {
        // Nobody uses the session. If this fails, it ends by itself.
        let _ = Client::new(options)?.log_out().await;
    }
    begun?;
    Ok(())
}

/// Has the other controller check whether it could take a model.
async fn check(target: &Controller, plan: &ImportPlan) -> Result<()> {
    let check = ControllerCommand::BeginImport { plan: Box::new(plan.clone()), check: true };
    target.client.controller_command(check).await?;
    Ok(())
}

/// Returns the place at which the other controller is reached by controllers and agents.
async fn place(target: &Controller) -> Result<ControllerPlace> {
    let info = target.client.controller().await?;
    let authority = target.entry.ca_cert.clone().ok_or_else(|| {
        Failure::new(format!("the authority of controller {} is not known here", target.name))
            .with_hint("register there once more: `periapt register TEXT --replace`")
    })?;
    Ok(ControllerPlace { controller: info.uuid, addresses: info.addresses, authority })
}

/// Returns true if an error may pass by itself.
fn may_pass(error: &ClientError) -> bool {
    error.refusal().map_or_else(|| error.is_temporary(), |refusal| refusal.code.is_temporary())
}

/// Waits until the other controller has taken over, and tells each phase once.
async fn wait(context: &Context, client: &Client, model: &ModelSelector, target: &Controller) -> Result<()> {
    let (mut told, mut waits) = (None, false);
    loop {
        let status = match client.migration(model).await {
            Ok(status) => {
                waits = false;
                status
            }
            // The controller may be started again meanwhile; the migration goes on then.
            Err(error) if may_pass(&error) => {
                if !std::mem::replace(&mut waits, true) {
                    context.say(format_args!("Waiting for the controller of the model: {error}"));
                }
                tokio::time::sleep(LOOK).await;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let Some(status) = status else { return Err(Failure::new("the migration was forgotten")) };
        match status.phase {
            MigrationPhase::Moved => {
                context.say(format_args!("The model has moved to controller {}", target.name));
                return Ok(());
            }
            MigrationPhase::Failed => {
                let reason = status.reason.unwrap_or_default();
                return Err(Failure::new(format!("the model stays: {reason}")));
            }
            phase if told != Some(phase) => {
                told = Some(phase);
                context.say(match phase {
                    MigrationPhase::HandedOver => "The other controller has all of it, and takes over",
                    _ => "The model is carried over, and takes no commands",
                });
            }
            _ => {}
        }
        tokio::time::sleep(LOOK).await;
    }
}
