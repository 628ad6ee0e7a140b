//! `find-offers` and `show-offer`.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    ApplicationName, EndpointName, InterfaceName, ModelName, UserName,
    offer::{OfferAccess, OfferDetails, OfferUrl, RemoteEndpoint},
};
use serde::Serialize;

use super::consumers::{Consumers, consumers};
use crate::{
    commands::Verb,
    context::{Context, Controller, ModelArg, ModelRef},
    data::ControllerName,
    error::{Failure, Result},
    output::{OutputArgs, Table, Text},
    parse::offer::{OfferRef, with_store},
};

/// The longest description in a table, in characters.
const SHOWN_DESCRIPTION: usize = 60;

/// Find offers of other models
///
/// All offers of a controller that you may see, or those of a user's model.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt find-offers
  periapt find-offers admin/prod
  periapt find-offers --interface mysql
  periapt find-offers --url admin/prod.mysql")]
pub(crate) struct FindOffers {
    /// Only offers of this model, or only this one
    #[arg(value_name = "[CONTROLLER:][USER/]MODEL[.OFFER]", conflicts_with = "url")]
    within: Option<String>,
    /// The same
    #[arg(long, value_name = "[CONTROLLER:][USER/]MODEL[.OFFER]")]
    url: Option<String>,
    /// Only offers with an endpoint of this interface
    #[arg(long, value_name = "NAME")]
    interface: Option<InterfaceName>,
    /// Only offers of this name
    #[arg(long, value_name = "NAME")]
    offer: Option<ApplicationName>,
    #[command(flatten)]
    output: OutputArgs,
    /// Ask this model's controller, if no other is named
    #[arg(short, long, value_name = "[CONTROLLER:][USER/]MODEL")]
    model: Option<ModelRef>,
}

/// Show details of an offer
///
/// A bare name is an offer of the current model.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt show-offer prod.mysql\n  periapt show-offer admin/prod.mysql --format yaml"
)]
pub(crate) struct ShowOffer {
    /// The offer
    #[arg(value_name = "[CONTROLLER:][USER/]MODEL.OFFER|OFFER")]
    offer: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// The place to search.
#[derive(Debug, Default, PartialEq, Eq)]
struct SearchScope {
    controller: Option<ControllerName>,
    owner: Option<UserName>,
    model: Option<ModelName>,
    offer: Option<ApplicationName>,
}

impl SearchScope {
    fn parse(text: &str) -> Result<Self> {
        let wrong = |error: periapt_host_api::NameError| Failure::new(error.to_string());
        let mut within = Self::default();
        let mut rest = text;
        if let Some((controller, after)) = rest.split_once(':') {
            within.controller = Some(controller.parse().map_err(|error| Failure::new(format!("{error}")))?);
            rest = after;
        }
        if let Some((owner, after)) = rest.split_once('/') {
            within.owner = Some(UserName::new(owner).map_err(wrong)?);
            rest = after;
        }
        if let Some((model, offer)) = rest.split_once('.') {
            within.offer = Some(ApplicationName::new(offer).map_err(wrong)?);
            rest = model;
        }
        if !rest.is_empty() {
            within.model = Some(ModelName::new(rest).map_err(wrong)?);
        }
        Ok(within)
    }
}

/// A found offer, with Juju's field names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Found {
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    access: OfferAccess,
    endpoints: BTreeMap<EndpointName, RemoteEndpoint>,
    users: Consumers,
}

impl Verb for FindOffers {
    async fn run(self, context: &Context) -> Result<()> {
        let text = self.within.or(self.url).unwrap_or_default();
        let within = SearchScope::parse(&text)?;
        let of_model = context.named(self.model.as_ref())?.and_then(|model| model.controller);
        let controller = context.controller(within.controller.as_ref().or(of_model.as_ref()))?;
        let fits = |offer: &OfferDetails| {
            let named = [&within.offer, &self.offer].into_iter().flatten().all(|name| offer.name == *name);
            let speaks = |name: &InterfaceName| offer.endpoints.values().any(|it| it.interface == *name);
            named && self.interface.as_ref().is_none_or(speaks)
        };
        let found = controller.client.find_offers(within.owner.as_ref(), within.model.as_ref()).await?;
        let found: BTreeMap<String, Found> = found
            .into_iter()
            .filter(fits)
            .map(|offer| {
                let (url, found) = shown(&controller, offer);
                // Juju shows descriptions of a single offer alone.
                (url, Found { description: String::new(), ..found })
            })
            .collect();
        if found.is_empty() {
            return Err(Failure::new("no matching application offers found"));
        }
        let store = controller.name.to_string();
        self.output.print(context.color, &found, |found| found_table(&store, found))
    }
}

impl Verb for ShowOffer {
    async fn run(self, context: &Context) -> Result<()> {
        let (controller, details) = match ApplicationName::new(&self.offer) {
            Ok(name) => {
                let model = context.model(&self.model)?;
                let offers = model.client().offers(&model.selector).await?;
                let found = offers.into_iter().find(|offer| offer.name == name);
                let found = found.ok_or_else(|| Failure::new(format!("offer \"{name}\" not found")))?;
                (model.controller, found)
            }
            Err(_) => {
                let named: OfferRef = self.offer.parse()?;
                let controller = context.controller(named.controller.as_ref())?;
                let details = one(&controller, &named.url).await?;
                (controller, details)
            }
        };
        let found = BTreeMap::from([shown(&controller, details)]);
        let store = controller.name.to_string();
        self.output.print(context.color, &found, |found| shown_table(&store, found))
    }
}

async fn one(controller: &Controller, url: &OfferUrl) -> Result<OfferDetails> {
    Ok(controller.client.offer(url).await?)
}

fn shown(controller: &Controller, offer: OfferDetails) -> (String, Found) {
    let url = with_store(controller, &offer.url);
    (
        url,
        Found {
            description: offer.description,
            access: offer.access,
            endpoints: offer.endpoints,
            users: consumers(offer.users),
        },
    )
}

fn without_store<'a>(store: &str, url: &'a str) -> &'a str {
    url.strip_prefix(store).and_then(|rest| rest.strip_prefix(':')).unwrap_or(url)
}

fn found_table(store: &str, found: &BTreeMap<String, Found>) -> Text {
    let mut table = Table::new(["Store", "URL", "Access", "Interfaces"]);
    for (url, offer) in found {
        let interfaces: Vec<String> =
            offer.endpoints.iter().map(|(name, it)| format!("{}:{name}", it.interface)).collect();
        table.row([
            store.into(),
            without_store(store, url).into(),
            offer.access.to_string().into(),
            interfaces.join(", ").into(),
        ]);
    }
    table.render()
}

fn shown_table(store: &str, found: &BTreeMap<String, Found>) -> Text {
    let heading = ["Store", "URL", "Access", "Description", "Endpoint", "Interface", "Role"];
    let mut table = Table::new(heading);
    for (url, offer) in found {
        let first = [
            store.to_owned(),
            without_store(store, url).to_owned(),
            offer.access.to_string(),
            shortened(&offer.description),
        ];
        for (index, (name, endpoint)) in offer.endpoints.iter().enumerate() {
            let cells = if index == 0 { first.clone() } else { Default::default() };
            let [store, url, access, description] = cells;
            table.row([
                store.into(),
                url.into(),
                access.into(),
                description.into(),
                name.as_str().into(),
                endpoint.interface.as_str().into(),
                endpoint.role.to_string().into(),
            ]);
        }
    }
    table.render()
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SHOWN_DESCRIPTION {
        return line;
    }
    line.chars().take(SHOWN_DESCRIPTION - 3).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> BTreeMap<String, Found> {
        let endpoint = RemoteEndpoint {
            interface: "mysql".parse().unwrap(),
            role: periapt_host_api::relation::Role::Provider,
        };
        let found = Found {
            description: "a database".into(),
            access: OfferAccess::Admin,
            endpoints: [("db".parse().unwrap(), endpoint)].into(),
            users: Consumers::new(),
        };
        BTreeMap::from([("local:admin/prod.mysql".to_owned(), found)])
    }

    #[test]
    fn found_offers_are_drawn_as_juju_draws_them() {
        let drawn = |text: Text| anstream::adapter::strip_str(&text).to_string();
        insta::assert_snapshot!(drawn(found_table("local", &found())), @r"
        Store  URL               Access  Interfaces
        local  admin/prod.mysql  admin   mysql:db
        ");
        insta::assert_snapshot!(drawn(shown_table("local", &found())), @r"
        Store  URL               Access  Description  Endpoint  Interface  Role
        local  admin/prod.mysql  admin   a database   db        mysql      provider
        ");
    }

    #[test]
    fn what_is_left_out_of_a_place_is_not_asked_for() {
        let all = SearchScope::parse("local:admin/prod.mysql").unwrap();
        assert_eq!(all.controller.unwrap().as_str(), "local");
        assert_eq!((all.owner.unwrap().as_str(), all.model.unwrap().as_str()), ("admin", "prod"));
        assert_eq!(all.offer.unwrap().as_str(), "mysql");
        assert_eq!(SearchScope::parse("").unwrap(), SearchScope::default());
        assert_eq!(SearchScope::parse("prod").unwrap().model.unwrap().as_str(), "prod");
        assert!(SearchScope::parse("local:").unwrap().controller.is_some());
        assert!(SearchScope::parse("a b/prod").is_err());
    }
}
