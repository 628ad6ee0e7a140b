//! Offers on a command line.

use std::str::FromStr;

use periapt_host_api::{
    ApplicationName, EndpointName,
    api::ModelSelector,
    command::{Answer, Command},
    offer::OfferUrl,
};

use super::ParseError;
use crate::{
    context::{Controller, Model},
    data::ControllerName,
    error::{Failure, Result},
};

/// A reference to an offer: `[CONTROLLER:][USER/]MODEL.OFFER`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OfferRef {
    /// The controller; none means the current one.
    pub(crate) controller: Option<ControllerName>,
    /// The offer's URL at the controller.
    pub(crate) url: OfferUrl,
}

impl FromStr for OfferRef {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (controller, url) = match text.split_once(':') {
            Some((controller, url)) => (Some(controller.parse()?), url),
            None => (None, text),
        };
        Ok(Self { controller, url: url.parse()? })
    }
}

impl OfferRef {
    /// Refuses an offer of another controller than the given one.
    pub(crate) fn require_on(&self, controller: &Controller) -> Result<()> {
        match &self.controller {
            Some(named) if *named != controller.name => Err(Failure::new(format!(
                "offer {} is on controller {named}, and the model is on controller {}",
                self.url, controller.name
            ))
            .with_hint("relations across controllers are not supported")),
            _ => Ok(()),
        }
    }

    /// Consumes the offer in a model, and returns its name and URL there.
    pub(crate) async fn consume(
        &self,
        model: &Model,
        name: Option<ApplicationName>,
    ) -> Result<(ApplicationName, OfferUrl)> {
        self.require_on(&model.controller)?;
        let command = Command::Consume { offer: self.url.clone(), application: name };
        match model.command(command).await? {
            Answer::Consumed { application, url } => Ok((application, url)),
            other => Err(Failure::unexpected(&other)),
        }
    }

    /// Returns the model that offers.
    pub(crate) async fn model(&self, controller: &Controller) -> Result<ModelSelector> {
        let Some(owner) = &self.url.owner else { return Ok(ModelSelector::Name(self.url.model.clone())) };
        let models = controller.client.models().await?;
        let found = models.iter().find(|model| model.owner == *owner && model.name == self.url.model);
        found.map(|model| ModelSelector::Uuid(model.uuid)).ok_or_else(|| {
            Failure::new(format!("model {owner}/{} not found", self.url.model))
                .with_hint("`periapt find-offers` lists what is offered")
        })
    }
}

/// An offer as the end of a relation: `[CONTROLLER:][USER/]MODEL.OFFER[:ENDPOINT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteEnd {
    /// The offer.
    pub(crate) offer: OfferRef,
    /// The endpoint; none means the one that fits.
    pub(crate) endpoint: Option<EndpointName>,
}

impl RemoteEnd {
    /// Parses an end. None for an end in the model itself: no application's name has a dot.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, ParseError> {
        let Some((model, offer)) = text.split_once('.') else { return Ok(None) };
        let (offer, endpoint) = match offer.split_once(':') {
            Some((offer, endpoint)) => (offer, Some(EndpointName::new(endpoint)?)),
            None => (offer, None),
        };
        Ok(Some(Self { offer: format!("{model}.{offer}").parse()?, endpoint }))
    }
}

/// Formats an offer's URL with its controller, as Juju does.
pub(crate) fn with_store(model: &Controller, url: &OfferUrl) -> String {
    format!("{}:{url}", model.name)
}

/// Returns the store of a model's offers: its controller.
pub(crate) fn store(model: &Model) -> String {
    model.controller.name.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_with_a_dot_is_an_offer_with_or_without_controller_and_endpoint() {
        let end = |text: &str| RemoteEnd::parse(text).unwrap();
        assert_eq!(end("mysql"), None);
        assert_eq!(end("mysql:db"), None);
        let full = end("local:admin/prod.mysql:db").unwrap();
        assert_eq!(full.offer.controller.as_ref().unwrap().as_str(), "local");
        assert_eq!(full.offer.url.to_string(), "admin/prod.mysql");
        assert_eq!(full.endpoint.unwrap().as_str(), "db");
        let short = end("prod.mysql").unwrap();
        assert_eq!((short.offer.controller, short.offer.url.owner, short.endpoint), (None, None, None));
        for bad in ["prod.", ".mysql", "prod.my sql", "prod.mysql:", "a b/prod.mysql"] {
            assert!(RemoteEnd::parse(bad).is_err(), "{bad}");
        }
    }
}
