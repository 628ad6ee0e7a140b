//! `show-application`

use std::collections::BTreeMap;

use clap::Args;
use periapt_host_api::{
    ApplicationName,
    api::{ApplicationDetails, EndpointDetails},
    command::Exposure,
    status::Base,
};
use serde::Serialize;

use crate::{
    commands::Verb,
    context::{Context, ModelArg},
    error::Result,
    output::OutputArgs,
    print::constraints::ConstraintsByKey,
};

/// Show details of applications; config shows their settings
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  periapt show-application mysql")]
pub(crate) struct ShowApplication {
    /// The applications
    #[arg(required = true)]
    applications: Vec<ApplicationName>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    model: ModelArg,
}

/// Juju's fields in its order, then Periapt's own.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownApplication {
    charm: String,
    base: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraints: Option<ConstraintsByKey>,
    principal: bool,
    exposed: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    exposed_endpoints: BTreeMap<String, ShownExposure>,
    remote: bool,
    life: String,
    endpoint_bindings: BTreeMap<String, String>,
    charm_rev: u64,
    charm_digest: String,
    /// The charms that it had before and that a refresh can go back to, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    former_charms: Vec<ShownFormerCharm>,
    trust: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: Option<String>,
    endpoints: BTreeMap<String, EndpointDetails>,
    units: Vec<String>,
}

/// A charm that an application had before.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownFormerCharm {
    charm: String,
    charm_rev: u64,
    charm_digest: String,
}

/// The spaces and subnets that reach an endpoint's ports.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ShownExposure {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expose_to_spaces: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    expose_to_cidrs: Vec<String>,
}

impl Verb for ShowApplication {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut applications = BTreeMap::new();
        for application in &self.applications {
            let details = model.client().application(&model.selector, application).await?;
            applications.insert(application.to_string(), shown(details));
        }
        self.output.or_yaml().print(context.color, &applications, |_| String::new())
    }
}

fn shown(details: ApplicationDetails) -> ShownApplication {
    let base = Base::default();
    let exposure = |exposure: &Exposure| ShownExposure {
        expose_to_spaces: exposure.spaces.iter().map(ToString::to_string).collect(),
        expose_to_cidrs: exposure.cidrs.iter().map(ToString::to_string).collect(),
    };
    let exposures = details.exposures.iter().filter(|_| details.exposed);
    let endpoints = details.endpoints.keys().map(ToString::to_string).chain([String::new()]);
    ShownApplication {
        endpoint_bindings: endpoints
            .map(|endpoint| (endpoint.clone(), details.bindings.space_of(&endpoint).to_owned()))
            .collect(),
        exposed_endpoints: exposures.map(|(endpoint, it)| (endpoint.clone(), exposure(it))).collect(),
        charm: details.charm_name,
        charm_rev: details.charm_revision,
        charm_digest: details.charm_digest.to_string(),
        former_charms: details
            .former_charms
            .into_iter()
            .map(|former| ShownFormerCharm {
                charm: former.name,
                charm_rev: former.revision,
                charm_digest: former.digest.to_string(),
            })
            .collect(),
        base: format!("{}@{}", base.name, base.channel),
        principal: !details.subordinate,
        exposed: details.exposed,
        remote: false,
        life: details.life.to_string(),
        trust: details.trust,
        constraints: (!details.constraints.is_empty()).then(|| ConstraintsByKey::of(&details.constraints)),
        leader: details.leader.map(|unit| unit.to_string()),
        endpoints: details
            .endpoints
            .into_iter()
            .map(|(name, endpoint)| (name.to_string(), endpoint))
            .collect(),
        units: details.units.iter().map(ToString::to_string).collect(),
    }
}
