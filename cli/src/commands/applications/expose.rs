//! `expose` and `unexpose`.

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    ApplicationName, SpaceName,
    command::{Command, Exposure},
    network::Subnet,
};

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
};

/// Make an application's open ports reachable from outside
///
/// Without options all of its ports are open to all addresses. An endpoint exposed by name has a rule of its own, which
/// replaces that of all endpoints for its ports.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt expose wordpress
  periapt expose wordpress --endpoints website --to-cidrs 10.0.0.0/24,192.168.1.0/24
  periapt expose wordpress --to-spaces internal")]
pub(crate) struct Expose {
    /// The application
    application: ApplicationName,
    /// Only ports that were opened for these endpoints, or for all
    #[arg(long, value_name = "ENDPOINT,...", value_delimiter = ',')]
    endpoints: Vec<String>,
    /// Only to these addresses
    #[arg(long, value_name = "CIDR,...", value_delimiter = ',')]
    to_cidrs: Vec<Subnet>,
    /// Only to all in these spaces, as they change
    #[arg(long, value_name = "SPACE,...", value_delimiter = ',')]
    to_spaces: Vec<SpaceName>,
    #[command(flatten)]
    model: ModelArg,
}

/// End the exposure of an application
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  periapt unexpose wordpress\n  periapt unexpose wordpress --endpoints website"
)]
pub(crate) struct Unexpose {
    /// The application
    application: ApplicationName,
    /// Only of these endpoints
    #[arg(long, value_name = "ENDPOINT,...", value_delimiter = ',')]
    endpoints: Vec<String>,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Expose {
    async fn run(self, context: &Context) -> Result<()> {
        let exposure = Exposure {
            cidrs: self.to_cidrs.into_iter().collect(),
            spaces: self.to_spaces.into_iter().collect(),
        };
        let endpoints: BTreeMap<String, Exposure> = match self.endpoints.is_empty() {
            true if exposure == Exposure::default() => BTreeMap::new(),
            true => BTreeMap::from([(String::new(), exposure)]),
            false => self.endpoints.into_iter().map(|endpoint| (endpoint, exposure.clone())).collect(),
        };
        let command = Command::Expose { application: self.application, endpoints };
        context.model(&self.model)?.command(command).await.map(drop)
    }
}

impl Verb for Unexpose {
    async fn run(self, context: &Context) -> Result<()> {
        let command = Command::Unexpose { application: self.application, endpoints: self.endpoints };
        context.model(&self.model)?.command(command).await.map(drop)
    }
}
