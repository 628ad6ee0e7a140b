//! `consume` and `remove-saas`.

use clap::Args;
use periapt_host_api::{ApplicationName, command::Command};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    parse::{offer::OfferRef, removal::ForceArgs},
    print::removal::report,
};

/// Add a remote offer to a model
///
/// Applications can then be related to it by its name. `integrate` does the same if it is given an offer's URL.
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
#[command(visible_alias = "remove-consumed-application")]
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

impl Verb for Consume {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let (name, url) = self.offer.consume(&model, self.name).await?;
        context.say(format_args!("Added {url} as {name}"));
        Ok(())
    }
}

impl Verb for RemoveSaas {
    async fn run(self, context: &Context) -> Result<()> {
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
