//! `restart`: services of a unit's container.

use clap::Args;
use periapt_host_api::{
    action::{ActionConcurrency, ActionReceiver, EnqueueOperation},
    container::{PodState, ReportedStartup, ServiceCurrent, ServiceState},
    exec::{self, ExecRequest},
};

use super::follow::{FollowArgs, FollowMode};
use crate::{
    commands::Verb,
    context::{Context, Model, ModelArg},
    error::{Failure, Result, with_source},
    parse::container::ContainerRef,
};

/// Restart services of a unit's container
///
/// Without services, all of the container restart that are enabled or run. It is a task, as a command of `exec --container`
/// is: it needs write access, waits for its turn beside the unit's hooks, and fails if a service does not come up.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt restart web/0
  periapt restart web/0:nginx
  periapt restart web/0:nginx nginx exporter")]
pub(crate) struct Restart {
    /// The unit, and its container if it has several
    #[arg(value_name = "UNIT[:CONTAINER]")]
    container: ContainerRef,
    /// The services
    #[arg(value_name = "SERVICE")]
    services: Vec<String>,
    #[command(flatten)]
    follow: FollowArgs,
    #[command(flatten)]
    model: ModelArg,
}

impl Verb for Restart {
    async fn run(self, context: &Context) -> Result<()> {
        let model = context.model(&self.model)?;
        let container = self.container.container(&model).await?;
        let services = match self.services.is_empty() {
            false => self.services,
            true => running(&model, &self.container, container.as_str()).await?,
        };
        let words: Vec<String> =
            ["pebble", "restart"].map(str::to_owned).into_iter().chain(services).collect();
        let request = ExecRequest::in_container(&words, container).map_err(with_source)?;
        let request = EnqueueOperation {
            action: exec::ACTION.to_owned(),
            receivers: vec![ActionReceiver::Unit(self.container.unit)],
            parameters: request.into_parameters(),
            turns: ActionConcurrency { parallel: Some(true), execution_group: None },
        };
        self.follow.carry_out(context, &model, request, FollowMode::Exec).await
    }
}

/// Returns the services of a container that are enabled or run, as the unit's agent reports them.
async fn running(model: &Model, of: &ContainerRef, container: &str) -> Result<Vec<String>> {
    let unit = &of.unit;
    let details = model.client().unit(&model.selector, unit).await?;
    let details = details.containers.into_iter().find(|(name, _)| name.as_str() == container);
    let (_, details) = details.ok_or_else(|| {
        Failure::new(format!("unit {unit} has no container {container}: its charm declares none"))
    })?;
    let named = "name the services: `periapt exec --container` with `pebble services` lists them";
    let report = details.report.ok_or_else(|| {
        Failure::new(format!("the agent of unit {unit} has not told which services there are"))
            .with_hint(named)
    })?;
    let PodState { services, left_out, .. } = report.pod;
    if left_out > 0 {
        return Err(Failure::new(format!("container {container} has many services")).with_hint(named));
    }
    let is_wanted = |service: &ServiceState| {
        service.startup == ReportedStartup::Enabled || service.current == ServiceCurrent::Active
    };
    let names: Vec<String> = services.into_iter().filter(is_wanted).map(|service| service.name).collect();
    match names.is_empty() {
        true => Err(Failure::new(format!("container {container} of unit {unit} has no services that run"))),
        false => Ok(names),
    }
}
