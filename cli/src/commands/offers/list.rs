//! `offers`.

use std::{collections::BTreeMap, path::PathBuf};

use clap::{Args, ValueEnum};
use periapt_host_api::{
    ApplicationName, EndpointName, InterfaceName, UserName,
    offer::{OfferConnection, OfferDetails, RemoteEndpoint},
    status::RelationState,
};
use serde::Serialize;

use super::consumers::{Consumers, consumers};
use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::{Sink, Table, Text, TextStyle, to_json, to_yaml},
    parse::offer::store,
};

/// List a model's offers and their connections
///
/// The table has a line for each relation with an offer; the summary one for each offer, with how many of its relations
/// are joined.
#[derive(Debug, Args)]
#[command(visible_alias = "list-offers")]
#[command(after_help = "\
Examples:
  periapt offers
  periapt offers hosted-mysql --active-only
  periapt offers --interface mysql --format summary
  periapt offers --application mysql --format yaml")]
pub(crate) struct Offers {
    /// Only this one
    #[arg(value_name = "OFFER")]
    name: Option<ApplicationName>,
    /// Only offers of this application
    #[arg(long, value_name = "NAME")]
    application: Option<ApplicationName>,
    /// Only offers with an endpoint of this interface
    #[arg(long, value_name = "NAME")]
    interface: Option<InterfaceName>,
    /// Only offers that a model of this user is connected to
    #[arg(long, value_name = "USER")]
    connected_user: Option<UserName>,
    /// Only offers that have relations
    #[arg(long)]
    active_only: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "tabular")]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArg,
}

/// The formats of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line per relation
    Tabular,
    /// A line per offer
    Summary,
    /// JSON, on one line
    Json,
    /// YAML
    Yaml,
}

/// An offer in the list, with Juju's field names.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    application: ApplicationName,
    store: String,
    charm: String,
    offer_url: String,
    endpoints: BTreeMap<EndpointName, RemoteEndpoint>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<OfferConnection>,
    users: Consumers,
}

type Listing = BTreeMap<ApplicationName, Listed>;

impl Verb for Offers {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let store = store(&model);
        let offers = model.client().offers(&model.selector).await?;
        let listing: Listing =
            offers.into_iter().filter(|offer| self.fits(offer)).map(|offer| listed(&store, offer)).collect();
        let text = match self.format {
            Format::Tabular => tabular(&listing),
            Format::Summary => summary(&listing),
            Format::Json => to_json(&listing)?,
            Format::Yaml => to_yaml(&listing)?,
        };
        Sink::new(self.output.as_deref(), context.color)?.write(&text)
    }
}

impl Offers {
    fn fits(&self, offer: &OfferDetails) -> bool {
        let connected = |user: &UserName| offer.connections.iter().any(|it| it.username == *user);
        let speaks = |name: &InterfaceName| offer.endpoints.values().any(|it| it.interface == *name);
        self.name.as_ref().is_none_or(|name| offer.name == *name)
            && self.application.as_ref().is_none_or(|name| offer.application == *name)
            && self.interface.as_ref().is_none_or(speaks)
            && self.connected_user.as_ref().is_none_or(connected)
            && !(self.active_only && offer.connections.is_empty())
    }
}

fn listed(store: &str, offer: OfferDetails) -> (ApplicationName, Listed) {
    let mut connections = offer.connections;
    connections
        .sort_by(|one, other| (&one.username, one.relation_id).cmp(&(&other.username, other.relation_id)));
    let listed = Listed {
        application: offer.application,
        store: store.to_owned(),
        charm: offer.charm,
        offer_url: offer.url.to_string(),
        endpoints: offer.endpoints,
        connections,
        users: consumers(offer.users),
    };
    (offer.name, listed)
}

fn tabular(listing: &Listing) -> Text {
    let heading =
        ["Offer", "User", "Relation ID", "Status", "Endpoint", "Interface", "Role", "Ingress subnets"];
    let mut table = Table::new(heading);
    for (name, offer) in listing {
        if offer.connections.is_empty() {
            let empty = || "".into();
            table.row([
                name.as_str().into(),
                "-".into(),
                empty(),
                empty(),
                empty(),
                empty(),
                empty(),
                empty(),
            ]);
        }
        for (index, connection) in offer.connections.iter().enumerate() {
            let endpoint = offer.endpoints.get(&connection.endpoint);
            let text = |of: fn(&RemoteEndpoint) -> String| endpoint.map(of).unwrap_or_default();
            let subnets: Vec<String> = connection.ingress_subnets.iter().map(ToString::to_string).collect();
            table.row([
                if index == 0 { name.as_str() } else { "" }.into(),
                connection.username.as_str().into(),
                connection.relation_id.to_string().into(),
                (connection.status.current.as_str(), style(connection.status.current)).into(),
                connection.endpoint.as_str().into(),
                text(|it| it.interface.to_string()).into(),
                text(|it| it.role.to_string()).into(),
                subnets.join(",").into(),
            ]);
        }
    }
    table.render()
}

fn style(state: RelationState) -> TextStyle {
    match state {
        RelationState::Joined => TextStyle::Good,
        RelationState::Suspending | RelationState::Suspended => TextStyle::Busy,
        RelationState::Joining | RelationState::Dying => TextStyle::Plain,
    }
}

fn summary(listing: &Listing) -> Text {
    let heading =
        ["Offer", "Application", "Charm", "Connected", "Store", "URL", "Endpoint", "Interface", "Role"];
    let mut table = Table::new(heading);
    for (name, offer) in listing {
        let joined = |it: &&OfferConnection| it.status.current == RelationState::Joined;
        let active = offer.connections.iter().filter(joined).count();
        let connected = format!("{active}/{}", offer.connections.len());
        let first = [
            name.to_string(),
            offer.application.to_string(),
            offer.charm.clone(),
            connected,
            offer.store.clone(),
            offer.offer_url.clone(),
        ];
        for (index, (name, endpoint)) in offer.endpoints.iter().enumerate() {
            let cells = if index == 0 { first.clone() } else { Default::default() };
            let [offer, application, charm, connected, store, url] = cells;
            table.row([
                offer.into(),
                application.into(),
                charm.into(),
                connected.into(),
                store.into(),
                url.into(),
                name.as_str().into(),
                endpoint.interface.as_str().into(),
                endpoint.role.to_string().into(),
            ]);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use periapt_host_api::offer::OfferConnectionStatus;

    use super::*;

    fn offer(connections: &[(u32, RelationState)]) -> OfferDetails {
        let endpoint = RemoteEndpoint {
            interface: "mysql".parse().unwrap(),
            role: periapt_host_api::relation::Role::Provider,
        };
        let connection = |(id, current): &(u32, RelationState)| OfferConnection {
            source_model_uuid: periapt_host_api::ModelUuid(Default::default()),
            username: "admin".parse().unwrap(),
            relation_id: periapt_host_api::RelationId(*id),
            endpoint: "db".parse().unwrap(),
            status: OfferConnectionStatus {
                current: *current,
                message: String::new(),
                since: "2026-01-02T03:04:05Z".parse().unwrap(),
            },
            ingress_subnets: ["10.0.0.1/32".parse().unwrap()].into(),
        };
        OfferDetails {
            name: "hosted".parse().unwrap(),
            uuid: periapt_host_api::OfferUuid(Default::default()),
            url: "admin/prod.hosted".parse().unwrap(),
            application: "mysql".parse().unwrap(),
            charm: "local:mysql-0".into(),
            description: String::new(),
            endpoints: [("db".parse().unwrap(), endpoint.clone()), ("logs".parse().unwrap(), endpoint)]
                .into(),
            access: periapt_host_api::offer::OfferAccess::Admin,
            users: BTreeMap::new(),
            connections: connections.iter().map(connection).collect(),
        }
    }

    fn drawn(table: &str) -> String {
        anstream::adapter::strip_str(table).to_string()
    }

    #[test]
    fn offers_are_listed_as_juju_lists_them() {
        let connected = listed("local", offer(&[(7, RelationState::Suspended), (2, RelationState::Joined)]));
        insta::assert_snapshot!(drawn(&tabular(&BTreeMap::from([connected]))), @r"
        Offer   User   Relation ID  Status     Endpoint  Interface  Role      Ingress subnets
        hosted  admin  2            joined     db        mysql      provider  10.0.0.1/32
                admin  7            suspended  db        mysql      provider  10.0.0.1/32
        ");
        let connected = listed("local", offer(&[(7, RelationState::Suspended), (2, RelationState::Joined)]));
        insta::assert_snapshot!(drawn(&summary(&BTreeMap::from([connected]))), @r"
        Offer   Application  Charm          Connected  Store  URL                Endpoint  Interface  Role
        hosted  mysql        local:mysql-0  1/2        local  admin/prod.hosted  db        mysql      provider
                                                                                 logs      mysql      provider
        ");
        let alone = listed("local", offer(&[]));
        insta::assert_snapshot!(drawn(&tabular(&BTreeMap::from([alone]))), @r"
        Offer   User  Relation ID  Status  Endpoint  Interface  Role  Ingress subnets
        hosted  -
        ");
    }
}
