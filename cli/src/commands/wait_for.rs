//! `wait-for`: until a model is as a script wants it, by its stream of statuses.

mod condition;

use std::time::Duration;

use clap::{Args, Subcommand};
use periapt_host_api::{ApplicationName, MachineId, UnitName, status::FullStatus};
use tokio::time::timeout;

use self::condition::{application_is, machine_is_started, model_is_settled, unit_is};
use super::status::Follow;
use crate::{
    context::{Context, ModelArg},
    duration,
    error::{Failure, Result},
};

/// Wait until a model, an application or a unit is as wanted
///
/// Goes by the model's stream of statuses, and waits for a controller that is away, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  periapt wait-for model
  periapt wait-for application wordpress --status blocked
  periapt wait-for application wordpress --units 5 --message '*port 8080*'
  periapt wait-for unit wordpress/2 --gone")]
pub(crate) struct WaitFor {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Model(ModelSettled),
    Machine(Machine),
    Application(Application),
    Unit(Unit),
}

#[derive(Debug, Args)]
struct Common {
    /// How long to wait
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10m")]
    timeout: Duration,
    #[command(flatten)]
    model: ModelArg,
}

/// Wait until all units of a model are settled, their agents idle, and nothing is on its way out
///
/// A unit is settled when it is active, or has started and its charm never sets a status. A change that no unit has begun
/// to act on is not seen: wait for what it leads to, by `--message` or `--units`.
#[derive(Debug, Args)]
struct ModelSettled {
    #[command(flatten)]
    common: Common,
}

/// Wait until a machine is there and its agent runs it
#[derive(Debug, Args)]
struct Machine {
    /// Its number
    machine: MachineId,
    #[command(flatten)]
    common: Common,
}

/// Statuses that a workload can have.
const STATUSES: [&str; 7] = ["active", "waiting", "maintenance", "blocked", "error", "terminated", "unknown"];

/// Statuses that an agent can have.
const AGENT_STATUSES: [&str; 6] = ["idle", "executing", "allocating", "error", "failed", "lost"];

/// What is wanted of units.
#[derive(Debug, Clone, Args)]
pub(crate) struct Wanted {
    /// The workload's status; unless said, active, or unknown once it has started, as of a charm that never sets one
    #[arg(long, conflicts_with = "gone", value_parser = STATUSES)]
    pub(crate) status: Option<String>,
    /// The workload's message; `*` stands for anything
    #[arg(long, value_name = "PATTERN", default_value = "*", conflicts_with = "gone")]
    pub(crate) message: String,
    /// What its agent does
    #[arg(long, default_value = "idle", conflicts_with = "gone", value_parser = AGENT_STATUSES)]
    pub(crate) agent: String,
    /// That it does not exist any more
    #[arg(long)]
    pub(crate) gone: bool,
}

/// Wait until all units of an application are as wanted
#[derive(Debug, Args)]
struct Application {
    /// The application
    name: ApplicationName,
    /// How many units it has
    #[arg(long, value_name = "COUNT", conflicts_with = "gone")]
    units: Option<usize>,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    common: Common,
}

/// Wait until a unit is as wanted
#[derive(Debug, Args)]
struct Unit {
    /// The unit
    name: UnitName,
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    common: Common,
}

impl WaitFor {
    pub(crate) async fn run(self, context: &Context) -> Result<()> {
        match self.what {
            What::Model(command) => command.common.wait(context, model_is_settled).await,
            What::Machine(command) => {
                let name = command.machine.to_string();
                command.common.wait(context, |status| machine_is_started(status, &name)).await
            }
            What::Application(command) => {
                let (name, units) = (command.name.to_string(), command.units);
                let holds = |status: &FullStatus| application_is(status, &name, units, &command.wanted);
                command.common.wait(context, holds).await
            }
            What::Unit(command) => {
                let name = command.name.to_string();
                let holds = |status: &FullStatus| unit_is(status, &name, &command.wanted);
                command.common.wait(context, holds).await
            }
        }
    }
}

impl Common {
    /// Waits until a condition holds. The condition says what it misses.
    async fn wait(&self, context: &Context, holds: impl Fn(&FullStatus) -> Result<(), String>) -> Result<()> {
        let model = context.model(&self.model)?;
        let mut missing = "the controller has not answered".to_owned();
        let waiting = async {
            let mut follow = Follow::new(&model);
            loop {
                match holds(&follow.next().await?) {
                    Ok(()) => return Ok(()),
                    Err(reason) => {
                        tracing::info!(reason, "not yet");
                        missing = reason;
                    }
                }
            }
        };
        match timeout(self.timeout, waiting).await {
            Ok(result) => result,
            Err(_) => Err(Failure::new(format!(
                "waited for {} s, and still: {missing}",
                self.timeout.as_secs_f64()
            ))
            .with_hint("`periapt status` and `periapt debug-log` say more")),
        }
    }
}
