//! `offer` and `remove-offer`.

use std::{collections::BTreeSet, str::FromStr};

use clap::Args;
use periapt_host_api::{
    ApplicationName, EndpointName,
    api::ModelSelector,
    command::{Answer, Command},
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg, ModelRef},
    data::ControllerName,
    error::{Failure, Result},
    parse::ParseError,
    parse::{offer::OfferRef, removal::ForceArgs},
    print::removal::report,
    prompt::PromptArg,
};

/// Offer endpoints of an application to other models
///
/// The offer has the application's name by default. A repeated offer replaces the endpoints.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt offer mysql:db
  periapt offer mymodel.mysql:db
  periapt offer mysql:db,logs hosted-mysql
  periapt offer mymodel.mysql:db --controller staging

See also: offers, consume, integrate, remove-offer")]
pub(crate) struct Offer {
    /// The application and its endpoints
    #[arg(value_name = "[[USER/]MODEL.]APPLICATION:ENDPOINT[,...]")]
    endpoints: Endpoints,
    /// The offer's name
    name: Option<ApplicationName>,
    /// The controller of the model, if not the current one
    #[arg(short, long, value_name = "NAME")]
    controller: Option<ControllerName>,
    #[command(flatten)]
    model: ModelArg,
}

/// Endpoints to offer: `[[USER/]MODEL.]APPLICATION:ENDPOINT[,...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Endpoints {
    model: Option<ModelSelector>,
    application: ApplicationName,
    endpoints: BTreeSet<EndpointName>,
}

impl FromStr for Endpoints {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (model, rest) = match text.split_once('.') {
            Some((model, rest)) => (Some(model.parse()?), rest),
            None => (None, text),
        };
        let wrong = || {
            ParseError::form("endpoints must conform to format \"<application-name>:<endpoint-name>[,...]\"")
        };
        let (application, endpoints) = rest.split_once(':').ok_or_else(wrong)?;
        let endpoints = endpoints.split(',').map(EndpointName::new).collect::<Result<_, _>>();
        Ok(Self { model, application: ApplicationName::new(application)?, endpoints: endpoints? })
    }
}

impl Verb for Offer {
    async fn run(self, context: &Context) -> Result<()> {
        let Endpoints { model, application, endpoints } = self.endpoints;
        let mut arg = ModelArg { model: context.named(self.model.model.as_ref())? };
        let of_model = arg.model.as_ref().and_then(|named| named.controller.clone());
        let controller = self.controller.or(of_model);
        if let Some(model) = model.or_else(|| arg.model.as_ref().map(|named| named.model.clone())) {
            arg.model = Some(ModelRef { controller, model });
        } else if let Some(name) = controller {
            let controller = context.controller(Some(&name))?;
            let current = controller.entry.current_model.clone();
            let model =
                current.ok_or_else(|| Failure::new(format!("no model of controller {name} is selected")));
            arg.model = Some(ModelRef { controller: Some(name), model: model?.selector() });
        }
        let model = context.model(&arg)?;
        let shown: Vec<&str> = endpoints.iter().map(EndpointName::as_str).collect();
        let shown = shown.join(", ");
        let command = Command::Offer {
            application: application.clone(),
            endpoints: endpoints.clone(),
            name: self.name,
            description: None,
        };
        if let Answer::Offer { url } = model.command(command).await? {
            context.say(format_args!(
                "Application \"{application}\" endpoints [{shown}] available at \"{url}\""
            ));
        }
        Ok(())
    }
}

/// Remove offers
///
/// A bare name is an offer of the current model. An offer with relations needs --force, which removes its relations,
/// too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt remove-offer admin/prod.hosted-mysql
  periapt remove-offer hosted-mysql --force --no-prompt")]
pub(crate) struct RemoveOffer {
    /// The offers
    #[arg(value_name = "[USER/]MODEL.OFFER|OFFER", required = true)]
    offers: Vec<String>,
    /// The controller of their models, if not the current one
    #[arg(short, long, value_name = "NAME")]
    controller: Option<ControllerName>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    prompt: PromptArg,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for RemoveOffer {
    async fn run(self, context: &Context) -> Result<()> {
        let force = self.force.force();
        if force.is_some() {
            self.prompt.confirm(&format!(
                "This command will remove offers: {}\nThis includes all relations to those offers.",
                self.offers.join(", ")
            ))?;
        }
        for text in &self.offers {
            let (offer, answer) = match ApplicationName::new(text) {
                Ok(offer) => {
                    let model = match self.controller {
                        Some(_) => {
                            return Err(Failure::new(format!(
                                "offer \"{offer}\" is given by its name alone"
                            ))
                            .with_hint("with --controller, name its model, too: [USER/]MODEL.OFFER"));
                        }
                        None => context.model(&self.model)?,
                    };
                    let command = Command::RemoveOffer { offer: offer.clone(), force };
                    (offer, model.command(command).await?)
                }
                Err(_) => {
                    let named: OfferRef = text.parse()?;
                    let controller =
                        context.controller(named.controller.as_ref().or(self.controller.as_ref()))?;
                    let model = named.model(&controller).await?;
                    let offer = named.url.offer.clone();
                    let command = Command::RemoveOffer { offer: offer.clone(), force };
                    (offer, controller.client.command(&model, command).await?)
                }
            };
            report(context, &format!("offer {offer}"), &answer);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_an_application_with_endpoints() {
        let read: Endpoints = "prod.mysql:db,logs".parse().unwrap();
        assert_eq!(read.model.unwrap().to_string(), "prod");
        assert_eq!(read.application.as_str(), "mysql");
        assert_eq!(read.endpoints.len(), 2);
        assert_eq!("mysql:db".parse::<Endpoints>().unwrap().model, None);
        for bad in ["mysql", "mysql:", "mysql:db,", ".mysql:db", "a b.mysql:db"] {
            assert!(bad.parse::<Endpoints>().is_err(), "{bad}");
        }
    }
}
