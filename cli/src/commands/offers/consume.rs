//! `consume` and `remove-saas`.

use clap::Args;
use periapt_host_api::{
    ApplicationName,
    command::{Answer, Command},
    offer::OfferUrl,
};

use crate::{
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    parse::{
        offer::OfferRef,
        removal::{ForceArgs, report},
    },
};

/// Make an offer of another model known in this one
///
/// Applications can be related to it then by its name. `integrate` does the same by itself where it is given an offer's
/// URL.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt consume prod.mysql
  periapt consume admin/prod.mysql database

See also: find-offers, integrate, remove-saas")]
pub(crate) struct Consume {
    /// The offer
    #[arg(value_name = "[CONTROLLER:][USER/]MODEL.OFFER")]
    offer: OfferRef,
    /// Its name here
    #[arg(value_name = "NAME")]
    name: Option<ApplicationName>,
    #[command(flatten)]
    model: ModelArg,
}

/// Remove consumed offers, and the relations with them
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  periapt remove-saas mysql\n  periapt remove-saas -m blog mysql --force")]
pub(crate) struct RemoveSaas {
    /// Their names in this model
    #[arg(value_name = "NAME", required = true)]
    names: Vec<ApplicationName>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Makes an offer known in a model, and answers its name and URL there.
pub(crate) async fn consume(
    model: &Model,
    offer: &OfferRef,
    name: Option<ApplicationName>,
) -> Result<(ApplicationName, OfferUrl)> {
    offer.require_on(&model.controller)?;
    let command = Command::Consume { offer: offer.url.clone(), application: name };
    match model.command(command).await? {
        Answer::Consumed { application, url } => Ok((application, url)),
        other => Err(Failure::unexpected(&other)),
    }
}

impl Consume {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let (name, url) = consume(&model, &self.offer, self.name).await?;
        context.say(format_args!("Added {url} as {name}"));
        Ok(())
    }
}

impl RemoveSaas {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let force = self.force.force();
        let command = |application: &ApplicationName| {
            let application = application.clone();
            Command::RemoveSaas { application, force }
        };
        let commands = self.names.iter().map(command).collect();
        let names: Vec<String> = self.names.iter().map(|name| format!("saas application {name}")).collect();
        model
            .commands(commands, |index, answer| {
                report(context, names.get(index).map(String::as_str).unwrap_or_default(), &answer);
            })
            .await
    }
}
