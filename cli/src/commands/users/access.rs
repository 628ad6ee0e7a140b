//! `grant` and `revoke`

use clap::Args;
use periapt_host_api::{
    UserName,
    access::{AccessError, ControllerAccess, ModelAccess},
    command::{Command, ControllerCommand},
    offer::{OfferAccess, OfferUrl},
};

use crate::{
    commands::Verb,
    context::{Context, Controller, ControllerArg, ModelRef},
    error::{Failure, Result},
    output::Sink,
    parse::registration::Registration,
};

/// Grant a user access to a controller, models or offers
///
/// Without models and offers the access is to the controller: login or superuser. Access to models is read, write or
/// admin; to offers read, consume or admin. A user NAME@DOMAIN, whom the controller's issuer knows, may log in from the
/// first grant of login on; the command prints the text to register with.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt grant jane read blog
  periapt grant jane write blog shop
  periapt grant jane consume admin/blog.mysql
  periapt grant jane superuser
  periapt grant jane@example.com login")]
pub(crate) struct Grant {
    #[command(flatten)]
    change: AccessArgs,
}

/// Revoke a user's access to a controller, models or offers
///
/// The next lower level stays: who loses write keeps read, and who loses read loses all access.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt revoke jane write blog
  periapt revoke jane superuser")]
pub(crate) struct Revoke {
    #[command(flatten)]
    change: AccessArgs,
}

/// The parameters of both.
#[derive(Debug, Args)]
struct AccessArgs {
    /// The user
    #[arg(value_name = "USER")]
    user: UserName,
    /// The level: login, superuser, read, write, consume or admin
    #[arg(value_name = "LEVEL")]
    level: String,
    /// The models or offers, which a full stop tells apart
    #[arg(value_name = "[USER/]MODEL[.OFFER]")]
    subjects: Vec<String>,
    #[command(flatten)]
    controller: ControllerArg,
}

/// The direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Grant,
    Revoke,
}

impl Verb for Grant {
    async fn run(self, context: &Context) -> Result<()> {
        self.change.run(context, Direction::Grant).await
    }
}

impl Verb for Revoke {
    async fn run(self, context: &Context) -> Result<()> {
        self.change.run(context, Direction::Revoke).await
    }
}

impl AccessArgs {
    async fn run(self, context: &Context, direction: Direction) -> Result<()> {
        let controller = context.controller(self.controller.controller.as_ref())?;
        if self.subjects.is_empty() {
            let access = level::<ControllerAccess>(&self.level).map_err(|failure| {
                failure.with_hint("access to a model names the model: `periapt grant USER read MODEL`")
            })?;
            let user = self.user;
            let command = match direction {
                Direction::Grant => ControllerCommand::GrantController { user: user.clone(), access },
                Direction::Revoke => ControllerCommand::RevokeController { user: user.clone(), access },
            };
            controller.client.controller_command(command).await?;
            return match direction {
                Direction::Grant if user.is_external() => invite(context, &controller, &user),
                Direction::Grant | Direction::Revoke => Ok(()),
            };
        }
        // All are read before the first is changed.
        let mut changes = Vec::new();
        for subject in &self.subjects {
            changes.push(self.change(subject, direction)?);
        }
        for change in changes {
            change.send(&controller).await?;
        }
        Ok(())
    }

    fn change(&self, subject: &str, direction: Direction) -> Result<Change> {
        let user = self.user.clone();
        // A user's name may have full stops, too.
        if subject.rsplit('/').next().is_some_and(|last| last.contains('.')) {
            let offer: OfferUrl = subject.parse().map_err(|error| Failure::new(format!("{error}")))?;
            let access: OfferAccess = offer_level(&self.level).ok_or_else(|| self.no_offer_level())?;
            return Ok(Change::Offer(match direction {
                Direction::Grant => ControllerCommand::GrantOffer { offer, user, access },
                Direction::Revoke => ControllerCommand::RevokeOffer { offer, user, access },
            }));
        }
        let model: ModelRef = subject.parse()?;
        let access: ModelAccess = level(&self.level)?;
        let command = match direction {
            Direction::Grant => Command::GrantModel { user, access },
            Direction::Revoke => Command::RevokeModel { user, access },
        };
        Ok(Change::Model(model, Box::new(command)))
    }

    fn no_offer_level(&self) -> Failure {
        Failure::new(format!(
            "invalid access level {:?} for an offer; known are read, consume and admin",
            self.level
        ))
    }
}

/// Prints the text that an external user registers with.
fn invite(context: &Context, controller: &Controller, user: &UserName) -> Result<()> {
    let text = Registration::external(controller, user).to_text();
    let text = format!(
        "User \"{user}\" may log in at the issuer\nPlease send this command to {user}:\n    periapt register {text}\n"
    );
    Sink::new(None, context.color)?.write(text)
}

/// One change.
enum Change {
    Model(ModelRef, Box<Command>),
    Offer(ControllerCommand),
}

impl Change {
    async fn send(self, controller: &Controller) -> Result<()> {
        match self {
            Self::Model(model, command) => {
                controller.client.command(&model.model, *command).await.map(drop)?
            }
            Self::Offer(command) => controller.client.controller_command(command).await.map(drop)?,
        }
        Ok(())
    }
}

fn level<T: std::str::FromStr<Err = AccessError>>(text: &str) -> Result<T> {
    text.parse().map_err(|error: AccessError| Failure::new(error.to_string()))
}

fn offer_level(text: &str) -> Option<OfferAccess> {
    [OfferAccess::Read, OfferAccess::Consume, OfferAccess::Admin]
        .into_iter()
        .find(|level| level.to_string() == text)
}
