//! `integrate` and `remove-relation`.

use std::str::FromStr;

use clap::Args;
use periapt_host_api::{
    RelationId,
    command::{Answer, Command, EndpointSelector, RelationSelector},
    network::Subnet,
};

use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    error::{Failure, Result},
    parse::ParseError,
    parse::{offer::RemoteEnd, removal::ForceArgs},
    print::removal::report,
};

/// Relate two applications
///
/// An endpoint may be left out if only one fits. One of the two may be an offer of another model; it is consumed under
/// the offer's name, unless it already was.
#[derive(Debug, Args)]
#[command(visible_alias = "relate")]
#[command(after_help = "\
Examples:
  periapt integrate wordpress mysql
  periapt integrate wordpress:db mysql:db
  periapt integrate wordpress admin/prod.mysql
  periapt integrate wordpress:db prod.mysql:db --via 192.0.2.0/24")]
pub(crate) struct Integrate {
    /// One application
    #[arg(value_name = "APPLICATION[:ENDPOINT]")]
    first: End,
    /// The other, or an offer
    #[arg(value_name = "APPLICATION[:ENDPOINT]|[USER/]MODEL.OFFER[:ENDPOINT]")]
    second: End,
    /// The subnets that this side's traffic comes from as the offering side sees it; the units' own addresses by default
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    via: Vec<Subnet>,
    #[command(flatten)]
    model: ModelArg,
}

/// Remove a relation
///
/// The units of both sides see each other depart first. `periapt status --relations` shows relations.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt remove-relation wordpress mysql\n  periapt remove-relation wordpress:db mysql:db\n  periapt remove-relation 4"
)]
pub(crate) struct RemoveRelation {
    /// Its two ends, or its number
    #[arg(value_name = "APPLICATION[:ENDPOINT]|NUMBER", required = true, num_args = 1..=2)]
    ends: Vec<String>,
    #[command(flatten)]
    force: ForceArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// One end of a new relation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Here(EndpointSelector),
    Offered(RemoteEnd),
}

impl FromStr for End {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match RemoteEnd::parse(text)? {
            Some(offered) => Ok(Self::Offered(offered)),
            None => Ok(Self::Here(text.parse()?)),
        }
    }
}

impl End {
    /// Returns the endpoint by its name in the model. An offer is consumed first.
    async fn in_model(self, model: &Model) -> Result<EndpointSelector> {
        match self {
            Self::Here(end) => Ok(end),
            Self::Offered(RemoteEnd { offer, endpoint }) => {
                let (application, _) = offer.consume(model, None).await?;
                Ok(EndpointSelector { application, endpoint })
            }
        }
    }
}

impl Verb for Integrate {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let first = self.first.in_model(&model).await?;
        let second = self.second.in_model(&model).await?;
        let command = Command::Integrate { first, second, via: self.via };
        match model.command(command).await? {
            Answer::Relation { id, endpoints } => {
                let ends: Vec<_> = endpoints.iter().map(ToString::to_string).collect();
                tracing::info!(%id, ends = ends.join(" "), "related");
                Ok(())
            }
            other => Err(Failure::unexpected(&other)),
        }
    }
}

impl Verb for RemoveRelation {
    async fn run(self, context: &Context) -> Result<()> {
        let relation = relation(&self.ends)?;
        let model = context.model(&self.model)?;
        let force = self.force.force();
        let answer = model.command(Command::RemoveRelation { relation, force }).await?;
        report(context, &format!("relation {}", self.ends.join(" ")), &answer);
        Ok(())
    }
}

fn relation(ends: &[String]) -> Result<RelationSelector> {
    let parse =
        |text: &String| text.parse::<EndpointSelector>().map_err(|error| Failure::new(error.to_string()));
    match ends {
        [id] => id.parse::<RelationId>().map(RelationSelector::Id).map_err(|_| {
            Failure::new(format!("{id:?} is not a relation id; name a relation by both its endpoints"))
        }),
        [first, second] => Ok(RelationSelector::Endpoints(parse(first)?, parse(second)?)),
        _ => Err(Failure::new("a relation has two endpoints")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_relation_is_named_by_its_number_or_by_its_ends() {
        assert_eq!(relation(&words(&["4"])).unwrap(), RelationSelector::Id(RelationId(4)));
        let RelationSelector::Endpoints(first, second) = relation(&words(&["blog:db", "mysql"])).unwrap()
        else {
            panic!("two ends were given")
        };
        assert_eq!(first.endpoint.unwrap().as_str(), "db");
        assert_eq!((second.application.as_str(), second.endpoint), ("mysql", None));
        assert!(relation(&words(&["blog"])).is_err());
        assert!(relation(&words(&["blog:", "mysql"])).is_err());
    }
}
